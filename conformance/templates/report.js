// Filters the cases. The page is complete without it.
(() => {
  "use strict";
  const at = (id) => document.getElementById("page:" + id);
  document.documentElement.classList.add("js");

  const reveal = () => {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      return;
    }
    const target = document.getElementById(id);
    if (!target) return;
    const hiding = target.closest("[hidden]") || target.querySelector(":scope > [hidden]");
    if (hiding && form) {
      form.reset();
      filter();
    }
    const details = target.closest("details");
    if (details) details.open = true; // not every browser opens it by itself
    if (hiding || details) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);

  const form = at("filter");
  if (!form) return;
  const areas = [...document.querySelectorAll(".area")].map((area) => ({
    area,
    cases: [...area.querySelectorAll(".case")].map((node) => ({ node, text: "" })),
  }));
  const total = areas.reduce((sum, { cases }) => sum + cases.length, 0);
  const fits = (item, words) => {
    if (at("differences").checked && !item.node.classList.contains("differs")) return false;
    if (at("fails").checked && !item.node.classList.contains("fails")) return false;
    if (!words.length) return true;
    item.text ||= item.node.querySelector(".find").textContent.toLowerCase();
    return words.every((word) => item.text.includes(word));
  };
  const filter = () => {
    const words = at("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { area, cases } of areas) {
      let here = 0;
      for (const item of cases) here += !(item.node.hidden = !fits(item, words));
      area.hidden = !here;
      shown += here;
    }
    at("count").value = shown === total ? `${total} cases` : `${shown} of ${total} cases`;
    document.querySelector(".empty").hidden = shown > 0;
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("pageshow", filter); // a browser that goes back fills in the fields again
  filter();
  reveal();
})();
