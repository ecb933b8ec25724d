"""The index of the commands: where each lives, its line of help and its example; none is imported for it."""

from typing import Final, NamedTuple


class Command(NamedTuple):
    """Where a command lives, as `module:function` below `api.commands`, its line of help and its example."""

    where: str
    help: str
    example: str
    dashed: bool = False
    """Whether a word that begins with `-` may be an argument; such a command has no `-h`."""


COMMANDS: Final[dict[str, Command]] = {
    "serve": Command(
        "local:serve",
        "Serve API, pages, conductor, Ray and MLflow until Ctrl-C; started again, it goes on where it was.",
        "metricsweep serve --home .metricsweep",
    ),
    "run": Command(
        "local:run",
        "Run one sweep here from spec to tables: starts what it needs, shows progress, leaves no server behind.",
        "metricsweep run sweeps/digits.yaml --out tables",
    ),
    "slots": Command(
        "slots:slots",
        "Keep as many slots alive as the conductor has use for, as jobs of Slurm, until Ctrl-C; jobs live on.",
        "metricsweep slots --slurm --partition gpu --gres gpu:1 --cpus 4 --time 4:00:00",
    ),
    "login-link": Command(
        "logins:login_link",
        "Print a link that logs a browser in: it works once, within the hour.",
        "metricsweep login-link",
    ),
    "users": Command(
        "users:users",
        "List users, or add one, change role, projects or quota, or disable it; of the home, or by --url.",
        "metricsweep users add ada --role member --project faces",
    ),
    "projects": Command(
        "users:projects",
        "List projects, or add one, open it to all users, close it, or set its quota; of the home, or by --url.",
        "metricsweep projects add faces",
    ),
    "tokens": Command(
        "tokens:tokens",
        "List tokens of users, or make one, which is shown once, or revoke one; of the home, or by --url.",
        "metricsweep tokens add ada --name laptop --days 90",
    ),
    "backup": Command(
        "backups:backup",
        "Copy the database of one moment and the storage into a new folder, with hashes; the service may run.",
        "metricsweep backup /backups/monday",
    ),
    "restore": Command(
        "backups:restore",
        "Make a new home of a backup; refused where the home holds anything, or a file is not what it was.",
        "metricsweep restore /backups/monday --home restored",
    ),
    "audit": Command(
        "audit:audit",
        "Print who did what when, from where, a line of JSON each; of the home, or by --url.",
        "metricsweep audit --after 1200",
    ),
    "mlflow-env": Command(
        "mlflow_env:mlflow_env",
        "Print the variables for an `mlflow` client of your own, for the shell to set.",
        'metricsweep mlflow-env      eval "$(metricsweep mlflow-env)"',
    ),
    "mlflow": Command(
        "mlflow:mlflow",
        "Tell MLflow anew of a sweep, or of all: one that was wiped, restored, or filled by a former release.",
        "metricsweep mlflow sync 7",
    ),
    "webhook": Command(
        "webhook:webhook",
        "Send the webhook a test message, from this machine by the settings of this shell; 0 where it is taken.",
        "metricsweep webhook test",
    ),
    "submit": Command(
        "sweeps:submit",
        "Submit a spec; every problem of a wrong one is told at once.",
        "metricsweep submit sweeps/digits.yaml --watch",
    ),
    "list": Command("sweeps:list_sweeps", "List sweeps, newest first.", "metricsweep list --state running --tag paper"),
    "show": Command(
        "show:show",
        "Show a sweep with its counts and problems, a cell of it with its numbers, or one trial.",
        "metricsweep show 7      metricsweep show 7/3      metricsweep show --trial 41",
    ),
    "note": Command(
        "remarks:note",
        "Note something of a sweep, a cell or a trial, or print its note.",
        'metricsweep note 7 "eta 1 diverges on two seeds"      metricsweep note --trial 41',
    ),
    "tag": Command(
        "remarks:tag",
        "Tag a sweep, a cell or a trial; `list --tag` and the filter `tag:paper` find it by these.",
        "metricsweep tag 7 paper -wip      metricsweep tag 7/3 best      metricsweep tag --trial 41 odd",
        dashed=True,
    ),
    "watch": Command(
        "watch:watch",
        "Watch a sweep until it ends; exits with 1 when it failed, lost trials or was cancelled.",
        "metricsweep watch 7",
    ),
    "table": Command(
        "tables:table",
        "Print or write a table; a sweep that still runs gives one that says what is missing.",
        "metricsweep table 7 main --out main.tex --tuned",
    ),
    "import": Command(
        "imports:import_",
        "Put other people's numbers into a table, as rows that are marked as imported and never counted as own.",
        "metricsweep import theirs.csv 7 --unit percent --row method --axis dataset",
    ),
    "verdicts": Command(
        "verdicts:verdicts",
        "Say of each cell whether it is better than its baseline, or how many more seeds would tell.",
        "metricsweep verdicts 7 main --json",
    ),
    "resolve": Command(
        "resolutions:resolve",
        "Train further seeds of those cells alone whose comparisons are open, in rounds, as far as the budget goes.",
        "metricsweep resolve 7 main --hours 40 --seeds 12",
    ),
    "resolution": Command(
        "resolutions:resolution",
        "Show what became of a resolution: verdicts before, rounds, verdicts after, trials saved; or end it.",
        "metricsweep resolution 7      metricsweep resolution 7 --halt",
    ),
    "compare": Command(
        "comparisons:compare",
        "Print or write one table of several sweeps; where several have a cell, the first named one's numbers stand.",
        "metricsweep compare 7 9 --view difference",
    ),
    "check": Command(
        "check:check",
        "Find numbers of a paper that no longer agree with the database or a bundle: 0 where all do, else 1.",
        "metricsweep check paper.tex      metricsweep check paper.tex --bundle out.zip",
    ),
    "drift": Command(
        "drift:drift",
        "Say which cells of a table changed, by what, and whether by more than noise.",
        "metricsweep drift 7@2026-11-20 7      metricsweep drift 7 9      metricsweep drift old.zip new.zip",
    ),
    "optimism": Command(
        "optimism:optimism",
        "Say by how much the best candidate of each cell looks better than it is, and what fewer would have found.",
        "metricsweep optimism 7",
    ),
    "ledger": Command(
        "ledgers:ledger",
        "Say of each number of a paper whether own runs reproduce it, and how their protocol differs.",
        "metricsweep ledger      metricsweep ledger SEC --out sec.tex      metricsweep ledger SEC --bundle out.zip",
    ),
    "rebuild": Command(
        "bundles:rebuild",
        "Check a bundle, make its tables again from its data, and compare: 0 where every byte is the same, else 1.",
        "metricsweep rebuild out.zip --table main --format latex",
    ),
    "figure": Command(
        "figures:figure",
        "Print or write a figure; a sweep that still runs gives one that says what is missing.",
        "metricsweep figure 7 main --format pdf -o main.pdf",
    ),
    "cancel": Command(
        "requests:cancel",
        "Ask that a sweep be stopped; trials that have ended keep their results.",
        "metricsweep cancel 7 --cell 3",
    ),
    "retry": Command(
        "requests:retry",
        "Ask that a sweep's failed and cancelled trials be trained again; finished ones are kept.",
        "metricsweep retry 7 --only failed",
    ),
    "pause": Command(
        "requests:pause",
        "Ask that nothing more of a sweep be started; what trains goes on to its end.",
        "metricsweep pause 7",
    ),
    "resume": Command("requests:resume", "Ask that a paused sweep go on.", "metricsweep resume 7"),
    "priority": Command(
        "requests:priority",
        "Set a sweep's priority; nothing that trains is stopped for it.",
        "metricsweep priority 7 10",
    ),
    "extend": Command(
        "requests:extend",
        "Extend a sweep to a wider spec (more seeds, a new loss); only what is new is trained.",
        "metricsweep extend 7 sweeps/digits.yaml --set 'repeat.seed=[0, 1, 2, 3, 4, 5]'",
    ),
    "delete": Command(
        "requests:delete",
        "Delete an ended sweep, with checkpoints, logs and results that no other sweep uses.",
        "metricsweep delete 7",
    ),
    "sizes": Command(
        "retention:sizes",
        "Say what lies on disk: the database, and what the trainings of each sweep keep.",
        "metricsweep sizes",
    ),
    "gc": Command(
        "retention:gc",
        "Let weights and checkpoints of ended sweeps go; results, curves, logs, figures and each cell's best stay.",
        "metricsweep gc --days 30 --keep 3      metricsweep gc --sweep 7 --yes",
    ),
    "requests": Command(
        "requests:requests",
        "List what was asked of a sweep, newest first, and what became of it; also of a sweep that was deleted.",
        "metricsweep requests 7",
    ),
    "catalog": Command(
        "catalog:catalog",
        "List the parts that a recipe may name, or show one with its hyper-parameters.",
        "metricsweep catalog loss triplet",
    ),
    "data": Command(
        "data:data",
        "List which data sets and weights the nodes have, or say what each of them has of one.",
        "metricsweep data cub200",
    ),
    "weights": Command(
        "weights:weights",
        "List, verify or fetch the pretrained weights of backbones, in this machine's data folder.",
        "metricsweep weights fetch bn_inception --data ~/data",
    ),
    "published": Command(
        "published:published",
        "List the papers' tables, or print one, by itself or as a spec lays it out.",
        "metricsweep published SEC-T3 --like sweeps/sec_t3.yaml --out sec-t3.tex",
    ),
    "expand": Command(
        "specs:expand",
        "Check a spec here, without a server, and count its cells, candidates and trials.",
        "metricsweep expand sweeps/digits.yaml",
    ),
}
"""Every command; a test runs the help of each and compares the lines with what the functions say."""
