// The page of filters: every check of any release. The fragment of the address holds the filter.
(() => {
  "use strict";
  const { at, make, index, results, search, save, csv, root } = conformance;
  const form = at("filter");
  const page = 100;
  let known = null;
  let shown = [];
  let turn = 0;

  const filter = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const options = (name, first, values) => {
    form.elements[name].replaceChildren(new Option(first, ""), ...values.map((value) => (Array.isArray(value) ? new Option(value[1], value[0]) : new Option(value, value))));
  };
  const unique = (values) => [...new Set(values)];

  const fill = () => {
    options("area", "any", unique(known.cases.map((each) => each.area)));
    options("framework", "any", known.frameworks);
    options("mode", "any", unique(known.targets.map((each) => each.mode)));
    options("device", "any", unique(known.targets.map((each) => each.device)).filter(Boolean));
    options("version", "the newest", unique(known.targets.flatMap((each) => each.versions.map((version) => `${each.framework} ${version}`))));
    options("outcome", "any", [...known.kinds.map((kind) => [kind, kind.replaceAll("-", " ")]), ["bad", "not as expected or crashed"]]);
    options("against", "–", known.frameworks);
  };

  const show = (said) => {
    for (const field of form.elements) {
      if (!field.name) continue;
      if (field.type === "checkbox") field.checked = said[field.name] === "yes";
      else if (field.value !== (said[field.name] || "")) {
        const value = said[field.name] || "";
        if (field.options && ![...field.options].some((each) => each.value === value)) field.add(new Option(value, value));
        field.value = value;
      }
    }
  };

  const wanted = (said) =>
    known.targets.filter((each) => {
      const [framework, version] = split(said.version);
      return (
        (!said.target || each.target === said.target) &&
        (!said.framework || each.framework === said.framework || each.framework === said.against) &&
        (!said.mode || each.mode === said.mode) &&
        (!said.device || each.device === said.device) &&
        (!version || (each.framework === framework && each.versions.includes(version)))
      );
    });
  const split = (text) => {
    const cut = (text || "").indexOf(" ");
    return cut < 0 ? ["", ""] : [text.slice(0, cut), text.slice(cut + 1)];
  };

  const checks = async (said) => {
    const targets = wanted(said);
    const [, version] = split(said.version);
    const loaded = await Promise.all(targets.map(results));
    const found = new Map();
    targets.forEach((target, number) => {
      const release = version ? target.versions.indexOf(version) : target.versions.length - 1;
      const { outcomes, rows, checks } = loaded[number];
      for (const [at, row, spans] of checks) {
        const span = spans.findLast((each) => each[0] <= release);
        if (!span || span[1] < 0) continue;
        if (!found.has(at)) found.set(at, []);
        found.get(at).push({ target, release: target.versions[release], row: rows[row], kind: known.kinds[span[1]], outcome: outcomes[span[2]], expected: outcomes[span[3]], text: span[5] });
      }
    });
    return found;
  };

  // Whether two frameworks showed different things of one row in one mode.
  const disagree = (all, one, other) => {
    const seen = {};
    for (const each of all) {
      if (each.kind === "not-run" || (each.target.framework !== one && each.target.framework !== other)) continue;
      const place = (seen[JSON.stringify([each.row, each.target.mode.split(",")[0], each.target.device])] ||= {});
      (place[each.target.framework] ||= new Set()).add(each.outcome);
    }
    return Object.values(seen).some((each) => each[one] && each[other] && [...each[one]].sort().join("\n") !== [...each[other]].sort().join("\n"));
  };

  const update = async () => {
    const mine = ++turn;
    const said = filter();
    show(said);
    let found;
    try {
      found = await checks(said);
    } catch (error) {
      at("summary").textContent = error.message;
      return;
    }
    if (mine !== turn) return;
    const cases = said.text ? search(known.cases, said.text) : known.cases;
    shown = [];
    let number = 0;
    for (const each of cases) {
      if ((said.area && each.area !== said.area) || (said.differences === "yes" && !each.differs)) continue;
      let all = found.get(each.number) || [];
      if (said.against && said.framework && !disagree(all, said.framework, said.against)) continue;
      if (said.outcome) all = all.filter((check) => check.kind === said.outcome || (said.outcome === "bad" && (check.kind === "failed" || check.kind === "crashed")));
      if (!all.length) continue;
      shown.push([each, all]);
      number += all.length;
    }
    at("summary").textContent = shown.length ? `${shown.length.toLocaleString("en")} ${shown.length === 1 ? "case" : "cases"}, ${number.toLocaleString("en")} ${number === 1 ? "check" : "checks"}${said.target ? ` on ${said.target}` : ""}` : "No check fits the filter.";
    at("take").hidden = !shown.length;
    at("results").replaceChildren();
    more(0);
  };

  const more = (from) => {
    const list = at("results");
    list.append(...shown.slice(from, from + page).map(([each, all]) => entry(each, all)));
    if (shown.length > from + page) {
      const button = make("button", { type: "button", class: "more" }, `Show ${Math.min(page, shown.length - from - page)} more`);
      button.addEventListener("click", () => {
        button.remove();
        more(from + page);
      });
      list.append(button);
    }
  };

  const entry = (each, all) => {
    const groups = new Map();
    for (const check of all) {
      const name = JSON.stringify([check.target.framework, check.kind, check.outcome]);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(check);
    }
    const lines = [...groups.values()].map((same) => {
      const [first] = same;
      const modes = unique(same.map((check) => check.target.mode)).join(", ");
      const expected = first.expected && first.expected !== first.outcome ? ` expected ${first.expected}` : "";
      return make("li", {}, `${first.target.framework} ${first.release} ${modes}`, " ", make("span", { class: "chip " + first.kind }, first.outcome), same.length > 1 ? ` ×${same.length}` : "", expected);
    });
    return make("article", { class: "hit" }, make("h2", {}, make("a", { href: root + encodeURI(each.address) }, each.claim)), make("p", { class: "identity" }, each.identity), make("ul", { class: "outcomes" }, ...lines));
  };

  const changed = (event) => {
    const said = {};
    for (const field of form.elements) {
      if (!field.name) continue;
      const value = field.type === "checkbox" ? (field.checked ? "yes" : "") : field.value.trim();
      if (value) said[field.name] = value;
    }
    const before = filter();
    if (before.target && (said.framework || "") === (before.framework || "") && event.target.name !== "mode") said.target = before.target;
    const hash = "#" + new URLSearchParams(said);
    // Each choice is a step to come back to; each letter is not.
    if (event.type === "input" && event.target.type === "search") {
      history.replaceState(null, "", hash);
      update();
    } else if (location.hash !== hash) location.hash = hash;
  };

  const table = () =>
    shown.flatMap(([each, all]) =>
      all.map((check) => ({
        case: each.identity, claim: each.claim, row: check.row, target: check.target.target, framework: check.target.framework,
        release: check.release, mode: check.target.mode, device: check.target.device, kind: check.kind, outcome: check.outcome, expected: check.expected,
      })),
    );

  index().then(
    (said) => {
      known = said;
      fill();
      addEventListener("hashchange", update);
      form.addEventListener("change", changed);
      form.addEventListener("input", (event) => event.target.type === "search" && changed(event));
      form.addEventListener("submit", (event) => event.preventDefault());
      form.addEventListener("reset", (event) => {
        event.preventDefault();
        location.hash = "#";
      });
      at("take").addEventListener("click", (event) => {
        const rows = table();
        if (event.target.dataset.take === "json") save("checks.json", "application/json", JSON.stringify(rows, null, 1));
        if (event.target.dataset.take === "csv") save("checks.csv", "text/csv", csv([Object.keys(rows[0]), ...rows.map(Object.values)]));
      });
      update();
    },
    (error) => (at("summary").textContent = error.message),
  );
})();
