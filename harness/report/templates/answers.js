
(function () {
  "use strict";
  var PAGE = 50;
  var cases = Array.prototype.slice.call(document.querySelectorAll("article"));
  var form = document.querySelector(".controls");
  var bars = Array.prototype.slice.call(document.querySelectorAll(".pages"));
  var texts = [];
  var shown = cases;
  var page = 0;

  function words(node) { return (node.getAttribute("data-right") || "").split(" "); }

  function answered(node) { return (node.getAttribute("data-answered") || "").split(" "); }

  function matchesOutcome(node, outcome) {
    if (!outcome) { return true; }
    var right = words(node), all = answered(node);
    var parts = outcome.split(" ");
    var has = function (name) { return right.indexOf(name) >= 0; };
    if (parts[0] === "differ") { return right[0] !== "" && right.length < all.length; }
    if (all.indexOf(parts[1]) < 0) { return false; }
    if (parts[0] === "right") { return has(parts[1]); }
    if (parts[0] === "wrong") { return !has(parts[1]); }
    if (parts[0] === "gained") { return has(parts[1]) && !has("reference"); }
    return !has(parts[1]) && has("reference");
  }

  function text(i) {
    if (texts[i] === undefined) { texts[i] = cases[i].textContent.toLowerCase(); }
    return texts[i];
  }

  function apply() {
    var family = form.elements.family.value, wording = form.elements.wording.value;
    var outcome = form.elements.outcome.value;
    var needle = form.elements.text.value.trim().toLowerCase();
    shown = cases.filter(function (node, i) {
      return (!family || node.getAttribute("data-family") === family) &&
        (!wording || node.getAttribute("data-wording") === wording) &&
        matchesOutcome(node, outcome) && (!needle || text(i).indexOf(needle) >= 0);
    });
    page = 0;
    show();
  }

  function show() {
    var last = Math.max(0, Math.ceil(shown.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    var from = page * PAGE, to = Math.min(shown.length, from + PAGE);
    cases.forEach(function (node) { node.hidden = true; });
    shown.slice(from, to).forEach(function (node) { node.hidden = false; });
    bars.forEach(function (bar) {
      bar.hidden = false;
      bar.querySelector(".back").disabled = page === 0;
      bar.querySelector(".next").disabled = page === last;
      bar.querySelector("span").textContent = shown.length === 0 ? "No case matches." :
        "Cases " + (from + 1) + " to " + to + " of " + shown.length +
        (shown.length < cases.length ? " that match, " + cases.length + " in all" : "");
    });
  }

  function follow() {
    var node = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    var i = node ? cases.indexOf(node) : -1;
    if (i < 0) { return; }
    form.reset();
    apply();
    page = Math.floor(i / PAGE);
    show();
    node.scrollIntoView();
  }

  bars.forEach(function (bar) {
    bar.querySelector(".back").addEventListener("click", function () { page -= 1; show(); });
    bar.querySelector(".next").addEventListener("click", function () {
      page += 1;
      show();
      window.scrollTo(0, 0);
    });
  });
  form.addEventListener("input", apply);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  window.addEventListener("hashchange", follow);
  form.hidden = false;
  apply();
  follow();
}());
