// Before MLflow's own page begins: what a first visit here finds chosen. What somebody chose later stays.
const FIRST = {
  "mlflow.assistant.fab.autoOpenedOnFirstLoad_v1": true, // it is switched off here, and would cover a third of the page
  "mlflow.workflowType_v1": "machine_learning", // runs with parameters and curves, not traces of language models
};
try {
  for (const [name, value] of Object.entries(FIRST)) {
    if (localStorage.getItem(name) === null) localStorage.setItem(name, JSON.stringify(value));
  }
} catch {
  // A browser that keeps nothing shows MLflow's own beginning.
}
