"""The tree of a spec's nodes with their places in its text, for those who change it; `document` reads the values."""

from yaml.composer import Composer
from yaml.nodes import Node
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner


class PurePython(Reader, Scanner, Parser):
    """PyYAML's own reading up to events, a tenth as fast as libyaml's: of what that cannot read, and for its places."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def scan_to_next_token(self) -> None:
        """Skip tabs too within brackets: JSON may be indented with them, and YAML 1.2 allows it."""
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":
            self.forward()
            super().scan_to_next_token()


class _Loader(PurePython, Composer, BaseResolver):
    """The same up to nodes, whose ends of block texts are where an editor looks for them."""

    def __init__(self, text: str) -> None:
        PurePython.__init__(self, text)
        Composer.__init__(self)
        BaseResolver.__init__(self)


def nodes(text: bytes) -> tuple[str, Node]:
    """A text that `document.parse` has read, as characters, and the tree of its nodes with their places in it."""
    decoded = text.decode("utf-8").removeprefix("\ufeff")
    node = _Loader(decoded).get_single_node()
    assert node is not None
    return decoded, node
