// Search, theme, and what other scripts of the site share. Every page is complete without it.
const conformance = (() => {
  "use strict";
  const root = document.documentElement.dataset.root;
  const at = (id) => document.getElementById("page:" + id);
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  };

  // --- data, which comes as scripts: from a disk a page cannot fetch anything else
  const data = {};
  const loading = {};
  const take = (name, content) => (data[name] = content);
  const load = (name, file) =>
    (loading[name] ||= new Promise((resolve, reject) => {
      const script = make("script", { src: root + file });
      script.onload = () => resolve(data[name]);
      script.onerror = () => {
        delete loading[name];
        reject(new Error(`${file} cannot be read`));
      };
      document.head.append(script);
    }));
  let made = null;
  const index = () => load("index", "files/index.js").then((said) => (made ||= prepare(said)));
  const prepare = (said) => {
    const targets = said.targets.map(([target, framework, mode, device, file, versions]) => ({ target, framework, mode, device, file, versions }));
    const cases = said.cases.map(([address, identity, claim, topic, words, differs, answers], number) => ({
      number, address, identity, claim, topic, differs, answers, area: identity.split("/")[0],
      claim_: claim.toLowerCase(), title: `${topic} ${identity}`.toLowerCase(), all: `${claim} ${topic} ${identity} ${words}`.toLowerCase(),
    }));
    return { ...said, targets, cases };
  };
  const results = (target) => load(target.file, target.file);

  // --- theme
  const themes = ["system", "light", "dark"];
  const button = at("theme");
  const show = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.querySelector(".name").textContent = theme;
  };
  show(document.documentElement.dataset.theme || "system");
  button.addEventListener("click", () => {
    const theme = themes[(themes.indexOf(document.documentElement.dataset.theme || "system") + 1) % 3];
    show(theme);
    try {
      if (theme === "system") localStorage.removeItem("conformance-theme");
      else localStorage.setItem("conformance-theme", theme);
    } catch {
      // it holds for this page alone
    }
  });

  // --- taking away
  const save = (name, type, text) => {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  // A sheet must not take a text for a formula.
  const field = (value) => `"${String(value ?? "").replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;
  const csv = (rows) => rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".csv");
    if (!button) return;
    const table = document.querySelector("table." + button.dataset.table);
    const heads = [...table.tHead.rows].map((row) => [...row.cells].flatMap((cell) => [cell.textContent.trim(), ...Array(cell.colSpan - 1).fill(cell.textContent.trim())]));
    const columns = heads[1] ? heads[1].map((mode, number) => `${heads[0][number + heads[0].length - heads[1].length]} ${mode}`) : heads[0];
    const body = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
    const stub = body[0] && body[0].length > columns.length ? [heads[0][0]] : [];
    save(location.pathname.split("/").pop().replace(/\.html$/, "") + ".csv", "text/csv", csv([[...stub, ...columns], ...body]));
  });

  // --- the age of the data
  for (const time of document.querySelectorAll("time.age")) {
    const days = Math.floor((Date.now() - new Date(time.dateTime)) / 864e5);
    if (days >= 0) time.append(` (${days === 0 ? "today" : days === 1 ? "yesterday" : `${days} days ago`})`);
  }

  // --- links to what is folded
  const reveal = () => {
    let target = null;
    try {
      target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return;
    }
    const details = target && target.closest("details");
    if (!details) return;
    details.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // --- search
  const ignored = new Set("a an and any are at be by can do does for from happens happen how if in into is it its me my of on or our that the their then there to was what when where which who why will with you".split(" "));
  const terms = (text) => text.toLowerCase().split(/[^\w.+-]+/).filter((word) => word && !ignored.has(word));
  const stem = (word) => (word.length > 4 ? word.replace(/(?:ies|es|s|ing|ed)$/, "") : word);
  const search = (cases, text) => {
    const words = terms(text).map(stem);
    if (!words.length) return [];
    const scored = [];
    for (const each of cases) {
      let score = 0;
      let missing = 0;
      for (const word of words) {
        const place = each.claim_.indexOf(word);
        if (place >= 0) score += place === 0 || /\W/.test(each.claim_[place - 1]) ? 6 : 4;
        else if (each.title.includes(word)) score += 3;
        else if (each.all.includes(word)) score += 2;
        else missing += 1;
      }
      if (missing < words.length && missing <= words.length / 3) scored.push([missing, -score, each]);
    }
    scored.sort((one, other) => one[0] - other[0] || one[1] - other[1] || one[2].claim.length - other[2].claim.length);
    return scored.map(([, , each]) => each);
  };

  const finder = () => {
    const field = at("search");
    const list = at("found");
    if (!field) return;
    let known = null;
    let chosen = -1;
    const close = () => {
      list.hidden = true;
      chosen = -1;
      field.setAttribute("aria-expanded", "false");
      field.removeAttribute("aria-activedescendant");
    };
    const answer = ([framework, kind, outcome]) => make("span", { class: "answer" }, known.frameworks[framework] + " ", make("span", { class: "chip " + kind }, outcome));
    const option = (each, number) =>
      make("a", { role: "option", id: "page:option-" + number, href: root + encodeURI(each.address), tabindex: "-1", "aria-selected": "false" },
        make("b", {}, each.claim), make("small", {}, each.identity), make("span", { class: "answers" }, ...each.answers.map(answer)));
    const update = async () => {
      try {
        known = await index();
      } catch (error) {
        list.replaceChildren(make("p", {}, error.message));
        list.hidden = false;
        return;
      }
      const found = search(known.cases, field.value);
      chosen = -1;
      field.removeAttribute("aria-activedescendant");
      const more = "find.html#" + new URLSearchParams({ text: field.value });
      list.replaceChildren(...found.slice(0, 12).map(option));
      if (found.length > 12) list.append(make("a", { role: "option", id: "page:option-12", class: "more", href: root + more, tabindex: "-1", "aria-selected": "false" }, `All ${found.length} cases`));
      if (!found.length && field.value.trim()) list.append(make("div", { role: "option", "aria-disabled": "true", "aria-selected": "false", class: "empty" }, "No case fits. Fewer words may find one."));
      list.hidden = !list.children.length;
      field.setAttribute("aria-expanded", String(!list.hidden));
    };
    const choose = (step) => {
      const options = [...list.querySelectorAll("a")];
      if (list.hidden || !options.length) return;
      if (chosen >= 0) options[chosen].setAttribute("aria-selected", "false");
      chosen = chosen < 0 && step < 0 ? options.length - 1 : (chosen + step + options.length) % options.length;
      options[chosen].setAttribute("aria-selected", "true");
      options[chosen].scrollIntoView({ block: "nearest" });
      field.setAttribute("aria-activedescendant", options[chosen].id);
    };
    field.addEventListener("focus", () => index().catch(() => {}));
    field.addEventListener("input", update);
    field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") choose(1);
      else if (event.key === "ArrowUp") choose(-1);
      else if (event.key === "Escape") close();
      else if (event.key === "Enter") (list.querySelectorAll("a")[Math.max(chosen, 0)] || { click() {} }).click();
      else return;
      event.preventDefault();
    });
    document.addEventListener("click", (event) => {
      if (!event.target.closest(".finder")) close();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
      event.preventDefault();
      field.focus();
    });
    if (field.value) update(); // a browser that goes back fills in the field again
  };
  finder();

  return { at, make, take, index, results, search, save, csv, root };
})();
