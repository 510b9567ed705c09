// Before anything is drawn: the theme that the reader has chosen, and that scripts run.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const chosen = localStorage.getItem("conformance-theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // no storage here: the system's theme it is
  }
})();
