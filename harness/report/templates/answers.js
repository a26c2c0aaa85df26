
(function () {
  "use strict";
  var PAGE = 50;
  var list = function (what, from) {
    return Array.prototype.slice.call((from || document).querySelectorAll(what));
  };
  var cases = list("article"), bars = list(".pages");
  var form = document.querySelector(".controls");
  var fields = ["family", "wording", "show", "text"];
  var texts = [], shown = cases, page = 0, at = -1;

  function words(node, name) { return (node.getAttribute("data-" + name) || "").split(" "); }

  function matches(node, asked) {
    if (!asked) { return true; }
    var parts = asked.split(" "), right = words(node, "right"), all = words(node, "answered");
    var has = function (name) { return right.indexOf(name) >= 0; };
    var every = parts.slice(1).every(function (name) { return all.indexOf(name) >= 0; });
    if (!every) { return false; }
    switch (parts[0]) {
      case "differ": return right[0] !== "" && right.length < all.length;
      case "right": return has(parts[1]);
      case "wrong": return !has(parts[1]);
      case "invalid": return words(node, "invalid").indexOf(parts[1]) >= 0;
      case "changed": return has(parts[1]) !== has(parts[2]);
      case "gained": return has(parts[1]) && !has(parts[2]);
      case "lost": return !has(parts[1]) && has(parts[2]);
      default: return false;
    }
  }

  function text(i) {
    if (texts[i] === undefined) { texts[i] = cases[i].textContent.toLowerCase(); }
    return texts[i];
  }

  function value(name) { return form.elements[name].value.trim(); }

  function apply() {
    var needle = value("text").toLowerCase();
    shown = cases.filter(function (node, i) {
      var fits = (!value("family") || node.getAttribute("data-family") === value("family")) &&
        (!value("wording") || node.getAttribute("data-wording") === value("wording")) &&
        matches(node, value("show")) && (!needle || text(i).indexOf(needle) >= 0);
      node.hidden = !fits;
      return fits;
    });
    page = 0;
    at = -1;
    turn();
  }

  function turn() {
    var last = Math.max(0, Math.ceil(shown.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    var from = page * PAGE, to = Math.min(shown.length, from + PAGE);
    shown.forEach(function (node, i) { node.classList.toggle("away", i < from || i >= to); });
    bars.forEach(function (bar) {
      bar.hidden = false;
      bar.querySelector(".back").disabled = page === 0;
      bar.querySelector(".next").disabled = page === last;
      bar.querySelector("span").textContent = shown.length === 0 ? "No case matches." :
        "Cases " + (from + 1) + " to " + to + " of " + shown.length +
        (shown.length < cases.length ? " that match, " + cases.length + " in all" : "");
    });
  }

  function remember() {
    var parts = fields.filter(value).map(function (name) {
      return name + "=" + encodeURIComponent(value(name));
    });
    try {
      history.replaceState(null, "", parts.length ? "#" + parts.join("&") : location.pathname);
    } catch (refused) { return; }
  }

  function go(i) {
    if (!shown[i]) { return; }
    at = i;
    page = Math.floor(i / PAGE);
    turn();
    shown[i].focus({ preventScroll: true });
    shown[i].scrollIntoView();
  }

  function decoded(word) {
    try { return decodeURIComponent(word); } catch (malformed) { return ""; }
  }

  function follow() {
    var hash = location.hash.slice(1), node = document.getElementById(hash);
    form.reset();
    if (node && cases.indexOf(node) >= 0) {
      apply();
      go(cases.indexOf(node));
      return;
    }
    hash.split("&").forEach(function (part) {
      var name = part.split("=")[0];
      if (fields.indexOf(name) >= 0) {
        form.elements[name].value = decoded(part.slice(name.length + 1));
      }
    });
    apply();
  }

  bars.forEach(function (bar) {
    [[".back", -1], [".next", 1]].forEach(function (way) {
      bar.querySelector(way[0]).addEventListener("click", function () {
        page += way[1];
        at = -1;
        turn();
        bars[0].scrollIntoView();
      });
    });
  });
  form.addEventListener("input", function () { apply(); remember(); });
  form.querySelector(".clear").addEventListener("click", function () {
    form.reset();
    apply();
    remember();
  });
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  document.addEventListener("keydown", function (event) {
    var tag = event.target.tagName;
    if (event.ctrlKey || event.altKey || event.metaKey) { return; }
    if (event.key === "Escape" && event.target === form.elements.text) { event.target.blur(); }
    if (tag === "INPUT" || tag === "SELECT") { return; }
    if (event.key === "/") {
      event.preventDefault();
      form.elements.text.focus();
    } else if (event.key === "j") {
      go(at < 0 ? page * PAGE : at + 1);
    } else if (event.key === "k") {
      go(at < 0 ? page * PAGE : at - 1);
    }
  });
  window.addEventListener("hashchange", follow);
  form.hidden = false;
  follow();
}());
