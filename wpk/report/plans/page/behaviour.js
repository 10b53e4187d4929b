"use strict";

/** Sort the operators by a column; a second press turns the order round. */
function sortBy(table, column) {
  const heading = table.tHead.rows[0].cells[column];
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  for (const each of table.tHead.rows[0].cells) each.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const numeric = heading.dataset.sort === "number";
  const key = (body) => body.rows[0].cells[column].dataset.value;
  const compare = (a, b) => (numeric ? key(a) - key(b) : key(a).localeCompare(key(b)));
  const bodies = [...table.tBodies].sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
  table.append(...bodies);
  narrow();
}

/** Open or close what is inside an operator. */
function toggle(button, open) {
  const show = open ?? button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(show));
  document.getElementById(button.getAttribute("aria-controls")).hidden = !show;
}

/** Mark everything that belongs to the operators of an element, in every section. */
function light(element) {
  const wanted = new Set(element ? element.dataset.ops.split(" ").filter(Boolean) : []);
  for (const each of document.querySelectorAll("[data-ops]")) {
    const shared = each.dataset.ops.split(" ").some((number) => wanted.has(number));
    each.classList.toggle("lit", shared);
  }
}

/** Open the operator that the address names. */
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.hidden) {
    filter.value = "";
    if (equal) equal.checked = false;
    narrow();
    target.scrollIntoView();
  }
  const button = target?.querySelector(".opener");
  if (button) toggle(button, true);
}

/** Show the operators that hold all words of the filter, equal ones once if that is asked for. */
function narrow() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const seen = new Set();
  let shown = 0;
  for (const body of table.tBodies) {
    const repeated = (equal?.checked ?? false) && seen.has(body.dataset.problem);
    const wanted = !repeated && words.every((word) => body.dataset.words.includes(word));
    if (wanted) seen.add(body.dataset.problem);
    body.hidden = !wanted;
    shown += wanted;
  }
  table.classList.toggle("grouped", equal?.checked ?? false);
  const all = table.tBodies.length;
  document.getElementById("shown").textContent = shown < all ? ` ${shown} of ${all} shown` : "";
}

const filter = document.getElementById("filter");
const equal = document.getElementById("equal");
const table = document.getElementById("operator-table");
[...table.tHead.rows[0].cells].forEach((heading, column) => {
  heading.querySelector("button").addEventListener("click", () => sortBy(table, column));
});
for (const button of table.querySelectorAll(".opener")) {
  button.addEventListener("click", () => toggle(button));
}
filter.addEventListener("input", narrow);
equal?.addEventListener("change", narrow);
const closest = (event) => event.target.closest?.("[data-ops]");
document.addEventListener("pointerover", (event) => light(closest(event)));
document.addEventListener("focusin", (event) => light(closest(event)));
document.addEventListener("click", (event) => light(closest(event)));
window.addEventListener("hashchange", openTarget);
openTarget();
