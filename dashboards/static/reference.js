// Draws the API's operations with the Swagger UI that this server holds; follows the system's light or dark.

const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
follow();
dark.addEventListener("change", follow);

const place = document.getElementById("reference");

/** What Swagger UI leaves without a name gets one: screen readers say nothing else of a field. */
function name(root) {
  for (const field of root.querySelectorAll("input:not([aria-label]), select:not([aria-label]), textarea:not([aria-label])")) {
    const row = field.closest("tr[data-param-name]");
    const what = row?.dataset.paramName ?? field.getAttribute("placeholder") ?? field.closest("label")?.textContent;
    field.setAttribute("aria-label", (what || "body of the request").trim());
  }
  for (const scrolled of root.querySelectorAll("pre:not([tabindex])")) scrolled.tabIndex = 0;
}

window.SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  syntaxHighlight: { activated: false },
  validatorUrl: null,
  onComplete: () => name(place),
});
new MutationObserver(() => name(place)).observe(place, { childList: true, subtree: true });
