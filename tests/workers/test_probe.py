"""The linear probe: a naive loop, scikit-learn's logistic regression, classifiers side by side, going on."""

import numpy as np
import pytest
import torch

from workers.evaluation.probe import Classified, Features, Probe, Schedule

CPU = torch.device("cpu")
SHORT = Schedule(rates=(0.5,), epochs=3, batch=16, at=(1, 2), factor=0.2)


def some(count: int = 48, width: int = 5, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(0)
    labels = torch.randint(classes, (count,), generator=drawn)
    return torch.randn(count, width, generator=drawn) + labels[:, None], labels


def trained(schedule: Schedule, features: torch.Tensor, labels: torch.Tensor, epochs: int | None = None) -> Probe:
    probe = Probe({"only": features.shape[1]}, int(labels.max()) + 1, schedule, CPU)
    return more(probe, features, labels, schedule.epochs if epochs is None else epochs)


def more(probe: Probe, features: torch.Tensor, labels: torch.Tensor, epochs: int) -> Probe:
    for _ in range(epochs):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(probe.epoch))
        for chosen in order.split(probe.schedule.batch):
            probe.learn({"only": features[chosen]}, labels[chosen])
        probe.epoch += 1
    return probe


def naive(schedule: Schedule, features: torch.Tensor, labels: torch.Tensor) -> np.ndarray:
    """The scores after the training of one classifier with the first rate, by loops in NumPy."""
    x, y = features.double().numpy(), labels.numpy()
    classes = y.max() + 1
    weight, bias = np.zeros((classes, x.shape[1])), np.zeros(classes)
    speed_w, speed_b = np.zeros_like(weight), np.zeros_like(bias)
    rate = schedule.rates[0]
    for epoch in range(schedule.epochs):
        if epoch in schedule.at:
            rate *= schedule.factor
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(epoch)).numpy()
        for first in range(0, len(y), schedule.batch):
            chosen = order[first : first + schedule.batch]
            down_w, down_b = np.zeros_like(weight), np.zeros_like(bias)
            for one in chosen:
                likely = np.exp(weight @ x[one] + bias)
                likely /= likely.sum()
                likely[y[one]] -= 1
                down_w += np.outer(likely, x[one]) / len(chosen)
                down_b += likely / len(chosen)
            speed_w, speed_b = 0.9 * speed_w + down_w, 0.9 * speed_b + down_b
            weight, bias = weight - rate * speed_w, bias - rate * speed_b
    scores: np.ndarray = x @ weight.T + bias
    return scores


def test_it_equals_a_naive_loop() -> None:
    features, labels = some()
    (found,) = trained(SHORT, features, labels).scores({"only": features})
    np.testing.assert_allclose(found.numpy(), naive(SHORT, features, labels), atol=1e-4)


def test_side_by_side_each_is_what_it_is_alone() -> None:
    """Also beside one that diverges."""
    features, labels = some()
    rates = (0.5, 1e38, 0.1)
    together = trained(SHORT._replace(rates=rates), features, labels).scores({"only": features})
    assert not together[1].isfinite().all()
    for place in (0, 2):
        (alone,) = trained(SHORT._replace(rates=(rates[place],)), features, labels).scores({"only": features})
        assert torch.equal(together[place], alone)


def test_it_goes_on_where_it_was() -> None:
    features, labels = some()
    (whole,) = trained(SHORT, features, labels).scores({"only": features})
    first = trained(SHORT, features, labels, epochs=1)
    again = Probe({"only": 5}, 3, SHORT, CPU)
    again.load_state_dict(first.state_dict())
    (found,) = more(again, features, labels, 2).scores({"only": features})
    assert torch.equal(found, whole)


def test_equal_scores_are_told_by_chance() -> None:
    labels = torch.tensor([0, 1, 2, 0])
    alike = Classified(torch.zeros(4, 4), labels)
    assert alike.hits(1).tolist() == [0.25] * 4
    assert alike.hits(2).tolist() == [0.5] * 4
    scores = torch.tensor([[3.0, 2, 1, 0], [3, 2, 2, 0], [3, 2, 1, 0], [torch.nan, 2, 1, 0]])
    told = Classified(scores, labels)
    assert told.hits(1).tolist() == [1, 0, 0, 0]
    assert told.hits(2).tolist() == [1, 0.5, 0, 0], "one that is not finite is told wrong"
    assert told.hits(3).tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("k", [1, 3, 200])
def test_votes_equal_a_naive_loop(k: int) -> None:
    known, labels = some(60)
    asked, wanted = some(20)
    votes = np.zeros((20, 3))
    for row, one in enumerate(asked.double()):
        cosines = [float(one @ other / one.norm() / other.norm()) for other in known.double()]
        for place in sorted(range(60), key=lambda other: -cosines[other])[:k]:
            votes[row, labels[place]] += np.exp((cosines[place] - 1) / 0.07)
    found = Features(asked, wanted, known, labels).voted(k)
    np.testing.assert_allclose(found.scores.numpy(), votes, rtol=1e-4, atol=1e-6)
    expected = (votes.argmax(axis=1) == wanted.numpy()).mean()
    assert float(found.hits(1).mean()) == pytest.approx(expected)
