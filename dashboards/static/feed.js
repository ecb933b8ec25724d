// A shared worker: the pages of one browser have one stream of events together, since browsers keep only six
// connections to a server. With no page in front of anybody there is no stream.

const TYPES = ["sweep", "notice", "cell", "trial", "trials", "progress", "stalled", "request"];
const AGAIN = 60_000;
const pages = new Set();
let source = null;
let open = false;
let timer = 0;

function tell(message) {
  for (const page of pages) page.postMessage(message);
}

function begin() {
  clearTimeout(timer);
  source = new EventSource("/v1/events");
  source.onopen = () => tell({ live: (open = true) });
  source.onerror = () => {
    tell({ live: (open = false) });
    if (source.readyState !== EventSource.CLOSED) return; // the browser asks again by itself
    source = null; // refused: too many streams, or nobody is logged in any more
    if (pages.size) timer = setTimeout(begin, AGAIN);
  };
  for (const type of TYPES)
    source.addEventListener(type, ({ lastEventId, data }) => tell({ id: Number(lastEventId), change: JSON.parse(data) }));
  for (const type of ["hello", "reset"])
    source.addEventListener(type, ({ lastEventId }) => tell({ id: Number(lastEventId), change: null }));
}

function end() {
  clearTimeout(timer);
  source?.close();
  source = null;
  open = false;
}

onconnect = ({ ports: [page] }) => {
  page.onmessage = () => {
    pages.delete(page);
    if (!pages.size) end();
  };
  pages.add(page);
  if (open) page.postMessage({ live: true });
  else if (!source) begin();
};
