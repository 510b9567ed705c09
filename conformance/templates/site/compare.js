// Any two targets, or two releases of one: only what they do not agree on. The fragment of the address says which.
(() => {
  "use strict";
  const { at, make, index, results, save, csv, root } = conformance;
  let known = null;
  let found = [];
  let turn = 0;

  // What became of a check from one release to another; the order of these is that of the page.
  const CHANGES = [
    "no longer as expected", "no longer supported", "could not run", "another outcome", "same outcome, another observation",
    "as expected now", "supported now", "could run now",
  ];
  const passed = (seen) => !["failed", "crashed", "not-run"].includes(seen.kind);
  const change = (before, after) => {
    if (before.outcome === after.outcome) return before.observation === after.observation ? "" : "same outcome, another observation";
    if (before.outcome === "not-run" || after.outcome === "not-run") return after.outcome === "not-run" ? "could not run" : "could run now";
    if (passed(before) && !passed(after)) return "no longer as expected";
    if (before.outcome === "unsupported" || after.outcome === "unsupported") return after.outcome === "unsupported" ? "no longer supported" : "supported now";
    if (passed(after) && !passed(before)) return "as expected now";
    return "another outcome";
  };
  // Two targets are no before and after: neither is what the other has become.
  const BETWEEN = ["another outcome", "only the left has it", "only the right has it", "only one could run"];
  const between = (left, right) => {
    if (left.outcome === right.outcome) return "";
    if (left.outcome === "not-run" || right.outcome === "not-run") return "only one could run";
    if (left.outcome === "unsupported" || right.outcome === "unsupported") return right.outcome === "unsupported" ? "only the left has it" : "only the right has it";
    return "another outcome";
  };

  const fields = Object.fromEntries(["a-target", "a-version", "b-target", "b-version", "area"].map((name) => [name, at(name)]));
  const target = (side) => known.targets.find((each) => each.target === fields[side + "-target"].value) || known.targets[0];
  const versions = (side, wanted) => {
    const said = [...target(side).versions].reverse();
    fields[side + "-version"].replaceChildren(...said.map((version) => new Option(version || "unknown", version)));
    if (said.includes(wanted)) fields[side + "-version"].value = wanted;
  };

  const read = () => {
    const said = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const several = known.targets.find((each) => each.versions.length > 1) || known.targets[0];
    const start = { a: several.target, av: several.versions.at(-2) ?? several.versions[0], b: several.target, bv: several.versions.at(-1) };
    const now = said.a ? said : { ...start, ...said };
    for (const side of ["a", "b"]) {
      if (known.targets.some((each) => each.target === now[side])) fields[side + "-target"].value = now[side];
      versions(side, now[side + "v"] ?? target(side).versions.at(-1));
    }
    fields.area.value = now.area || "";
  };
  const written = () => {
    const said = { a: fields["a-target"].value, av: fields["a-version"].value, b: fields["b-target"].value, bv: fields["b-version"].value };
    if (fields.area.value) said.area = fields.area.value;
    return "#" + new URLSearchParams(said);
  };

  const seen = (loaded, at, release) => {
    const all = new Map();
    for (const [number, row, spans] of loaded.checks) {
      const span = spans.findLast((each) => each[0] <= release);
      if (span && span[1] >= 0) {
        all.set(`${number} ${loaded.rows[row]}`, {
          number, row: loaded.rows[row], kind: known.kinds[span[1]], outcome: loaded.outcomes[span[2]], expected: loaded.outcomes[span[3]], observation: span[4], text: span[5],
        });
      }
    }
    return all;
  };

  const update = async () => {
    const mine = ++turn;
    read();
    const sides = ["a", "b"].map((side) => ({ target: target(side), release: target(side).versions.indexOf(fields[side + "-version"].value) }));
    let loaded;
    try {
      loaded = await Promise.all(sides.map((side) => results(side.target)));
    } catch (error) {
      at("summary").textContent = error.message;
      return;
    }
    if (mine !== turn) return;
    const [left, right] = sides.map((side, number) => seen(loaded[number], side.target, side.release));
    const same = sides[0].target === sides[1].target;
    const area = fields.area.value;
    found = [];
    let both = 0;
    const edited = new Set();
    for (const [name, before] of left) {
      const after = right.get(name);
      const each = known.cases[before.number];
      if (!after || (area && each.area !== area)) continue;
      if (before.text !== after.text) {
        edited.add(each.identity);
        continue;
      }
      both += before.outcome === "not-run" && after.outcome === "not-run" ? 0 : 1;
      const what = same ? change(before, after) : between(before, after);
      if (what) found.push({ what, each, before, after });
    }
    const order = same ? CHANGES : BETWEEN;
    const names = sides.map((side) => `${side.target.target} ${side.target.versions[side.release]}`);
    const skipped = edited.size ? ` ${edited.size} ${edited.size === 1 ? "case was" : "cases were"} edited in between, and not compared.` : "";
    at("summary").textContent = both ? `${names[0]} and ${names[1]}: ${found.length.toLocaleString("en")} of ${both.toLocaleString("en")} checks that both have differ.${skipped}` : `${names[0]} and ${names[1]} have no check in common.${skipped}`;
    at("take").hidden = !found.length;
    at("results").replaceChildren(...order.map((what) => section(what, found.filter((each) => each.what === what))).filter(Boolean));
  };

  const section = (what, these) => {
    if (!these.length) return null;
    const list = make("ul", { class: "shifts wide" });
    const more = (from) => {
      list.append(...these.slice(from, from + 200).map(item));
      if (these.length > from + 200) {
        const button = make("button", { type: "button", class: "more" }, `Show ${Math.min(200, these.length - from - 200)} more`);
        const row = make("li", {}, button);
        button.addEventListener("click", () => {
          row.remove();
          more(from + 200);
        });
        list.append(row);
      }
    };
    more(0);
    return make("section", {}, make("h2", {}, what[0].toUpperCase() + what.slice(1), " ", make("small", {}, these.length.toLocaleString("en"))), list);
  };
  const item = ({ each, before, after }) =>
    make("li", {}, make("a", { href: root + encodeURI(each.address) }, each.claim), " ", make("span", { class: "where" }, each.identity + (before.row ? `, ${before.row}` : "")), " ",
      make("span", { class: "change" }, make("span", { class: "chip " + before.kind }, before.outcome), make("span", { "aria-label": "then" }, " → "), make("span", { class: "chip " + after.kind }, after.outcome)));

  const table = () => found.map(({ what, each, before, after }) => ({ change: what, case: each.identity, claim: each.claim, row: before.row, left: before.outcome, right: after.outcome }));

  index().then(
    (said) => {
      known = said;
      for (const side of ["a", "b"]) {
        fields[side + "-target"].replaceChildren(...said.targets.map((each) => new Option(each.target, each.target)));
        fields[side + "-target"].addEventListener("change", () => {
          versions(side, "");
          location.hash = written();
        });
        fields[side + "-version"].addEventListener("change", () => (location.hash = written()));
      }
      fields.area.replaceChildren(new Option("all", ""), ...[...new Set(said.cases.map((each) => each.area))].map((area) => new Option(area, area)));
      fields.area.addEventListener("change", () => (location.hash = written()));
      at("swap").addEventListener("click", () => {
        const now = Object.fromEntries(new URLSearchParams(written().slice(1)));
        location.hash = "#" + new URLSearchParams({ ...now, a: now.b, av: now.bv, b: now.a, bv: now.av });
      });
      at("take").addEventListener("click", (event) => {
        const rows = table();
        if (event.target.dataset.take === "json") save("comparison.json", "application/json", JSON.stringify(rows, null, 1));
        if (event.target.dataset.take === "csv") save("comparison.csv", "text/csv", csv([Object.keys(rows[0]), ...rows.map(Object.values)]));
      });
      addEventListener("hashchange", update);
      update();
    },
    (error) => (at("summary").textContent = error.message),
  );
})();
