"""TensorFlow's SAME padding, which at stride 2 pads an even side on the right and below only."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class SameConv2d(nn.Conv2d):
    """A convolution whose output is ceil(side / stride) wide; what cannot be padded evenly goes right and below."""

    def forward(self, images: Tensor) -> Tensor:
        """Maps [b, c, h, w] to [b, c', ceil(h / stride), ceil(w / stride)]."""
        rows, columns = (
            max((-(-side // stride) - 1) * stride + dilation * (kernel - 1) + 1 - side, 0)
            for side, kernel, stride, dilation in zip(
                images.shape[-2:], self.kernel_size, self.stride, self.dilation, strict=True
            )
        )
        padded = functional.pad(images, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return functional.conv2d(padded, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


def pad_same(net: nn.Module) -> None:
    """Replace every strided convolution of `net` by one with SAME padding that has the same weights."""
    for parent in list(net.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Conv2d and max(child.stride) > 1:
                setattr(parent, name, _same(child))


def _same(conv: nn.Conv2d) -> SameConv2d:
    with torch.device("meta"):  # no weights are drawn for what is replaced at once
        same = SameConv2d(
            conv.in_channels,
            conv.out_channels,
            conv.kernel_size,  # type: ignore[arg-type]
            stride=conv.stride,  # type: ignore[arg-type]
            dilation=conv.dilation,  # type: ignore[arg-type]
            groups=conv.groups,
            bias=conv.bias is not None,
        )
    same.weight, same.bias = conv.weight, conv.bias
    return same
