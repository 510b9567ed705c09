// Copies the source beside a button. Where scripts do not run, the button is not shown.
(() => {
  "use strict";
  const said = document.getElementById("page:said");

  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const code = button.closest("figure").querySelector("code");
    getSelection().selectAllChildren(code);
    let copied = true;
    try {
      await navigator.clipboard.writeText(code.textContent + "\n");
      getSelection().removeAllRanges();
    } catch {
      copied = document.execCommand("copy"); // the selection stays, for whoever must copy by hand
    }
    button.firstChild.data = copied ? "Copied" : "Press Ctrl+C";
    said.textContent = copied ? "Copied" : "The code is selected";
    setTimeout(() => {
      button.firstChild.data = "Copy";
      said.textContent = "";
    }, 2000);
  });
})();
