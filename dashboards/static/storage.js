// Fetches what a sweep keeps on disk once it is unfolded: the server looks through its files for it, which may last.

const details = document.getElementById("storage");
const place = document.getElementById("storage-kept");

async function look() {
  const told = document.getElementById("storage-told");
  if (!details.open || !told) return;
  const link = told.innerHTML;
  told.textContent = "Looking through its files…";
  try {
    const answer = await fetch(place.dataset.from, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok || !page.getElementById("kept")) throw new Error(`status ${answer.status}`);
    place.replaceChildren(page.getElementById("kept"));
  } catch (error) {
    told.innerHTML = link;
    told.append(` (they could not be fetched: ${error.message})`);
  }
}

details?.addEventListener("toggle", look);
if (details?.open) look();
