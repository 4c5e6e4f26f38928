// What a browser with scripts gets beside the plain page: keys, select all,
// copying, and a page that brings itself up to date while nobody is in the
// middle of something. Every one of these has a link or a form that does the
// same.
(function () {
  "use strict";
  var body = document.body;
  var live = document.getElementById("live");

  // ---- What is there for scripts alone ----

  function prepare(root) {
    root.querySelectorAll("[data-script]").forEach(function (one) { one.hidden = false; });
    countSelected();
  }

  function countSelected() {
    var chosen = document.querySelectorAll("input[name=key]:checked").length;
    document.querySelectorAll("[data-selected]").forEach(function (one) {
      one.textContent = chosen ? chosen + " selected" : "selected";
    });
    document.querySelectorAll("[data-select-all]").forEach(function (all) {
      var boxes = document.querySelectorAll("input[name=key]").length;
      all.checked = chosen > 0 && chosen === boxes;
      all.indeterminate = chosen > 0 && chosen < boxes;
    });
  }

  document.addEventListener("change", function (e) {
    if (e.target.matches("[data-select-all]")) {
      document.querySelectorAll("input[name=key]").forEach(function (one) { one.checked = e.target.checked; });
    }
    if (e.target.matches("input[type=checkbox]")) { countSelected(); }
  });

  document.addEventListener("click", function (e) {
    var button = e.target.closest("[data-copy]");
    if (!button) { return; }
    navigator.clipboard.writeText(button.dataset.text || document.getElementById(button.dataset.copy).textContent).then(
      function () { button.textContent = "Copied"; },
      function () { button.textContent = "Not allowed"; });
  });

  // A form is sent once: the second click of a double click finds it busy.
  document.addEventListener("submit", function (e) {
    if (e.target.method !== "post") { return; }
    if (e.target.dataset.sent) { e.preventDefault(); return; }
    e.target.dataset.sent = "1";
  });
  window.addEventListener("pageshow", function () {
    document.querySelectorAll("form[data-sent]").forEach(function (form) { delete form.dataset.sent; });
    countSelected();
  });

  // ---- Up to date ----

  var every = Number(body.dataset.live || 0) * 1000;
  var updates = document.getElementById("updates");
  var stale = document.getElementById("stale");

  function typed(field) {
    if (field.type === "hidden") { return false; }
    if (field.tagName === "SELECT") {
      return field.selectedIndex !== Math.max(0, Array.prototype.findIndex.call(field.options, function (o) { return o.defaultSelected; }));
    }
    return field.type === "checkbox" ? field.checked : field.value !== field.defaultValue;
  }

  // Rows do not move under a hand that is about to reach for one.
  var moved = 0;
  ["pointermove", "pointerdown", "scroll", "keydown"].forEach(function (what) {
    window.addEventListener(what, function () { moved = Date.now(); }, { passive: true, capture: true });
  });

  function moving() { return Date.now() - moved < 3000; }

  // Somebody has selected, typed, opened or reached something.
  function busy() {
    return document.hidden || live.contains(document.activeElement) || document.activeElement === live.parentNode ||
      String(window.getSelection()) !== "" || live.querySelector("details[open]") !== null ||
      Array.prototype.some.call(live.querySelectorAll("input,select,textarea"), typed);
  }

  function say() {
    if (!updates) { return; }
    var word = busy() ? "paused" : "live";
    if (updates.textContent !== word) { updates.textContent = word; }
  }

  function take(text) {
    var fresh = new DOMParser().parseFromString(text, "text/html");
    ["live", "signals"].forEach(function (id) {
      var now = document.getElementById(id), next = fresh.getElementById(id);
      if (now && next && now.innerHTML !== next.innerHTML) {
        now.innerHTML = next.innerHTML;
        at = -1;
        prepare(now);
      }
    });
    updates = document.getElementById("updates");
    updates.hidden = false;
    if (!fresh.body.dataset.live) { every = 0; updates.hidden = true; }
  }

  function refresh() {
    if (!every) { return; }
    if (busy() || moving()) { say(); setTimeout(refresh, every / 4); return; }
    fetch(location.href, { headers: { "Creel-Live": "1" }, redirect: "manual", cache: "no-store" }).then(function (answer) {
      if (answer.type === "opaqueredirect") { location.reload(); return null; }
      if (!answer.ok) { throw new Error(); }
      return answer.text();
    }).then(function (text) {
      if (text !== null && !busy() && !moving()) { take(text); }
      stale.hidden = true;
      say();
    }).catch(function () {
      stale.hidden = false;
    }).then(function () { setTimeout(refresh, every); });
  }

  // ---- Keys ----

  var at = -1;
  function rows() { return document.querySelectorAll("[data-row]"); }
  function move(by) {
    var all = rows();
    if (!all.length) { return; }
    at = Math.max(0, Math.min(all.length - 1, at + by));
    var link = all[at].querySelector("a, button, summary");
    if (link) { link.focus(); }
  }
  document.addEventListener("keydown", function (e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("select, textarea, input:not([type=checkbox])")) { return; }
    var to = { "/": "input[name=q], input[type=search]", r: "[data-key=r]" }[e.key];
    if (to) {
      var found = document.querySelector(to);
      if (found) {
        e.preventDefault();
        if (e.key === "r") { found.click(); } else { found.focus(); }
      }
    } else if (e.key === "j") { move(1); } else if (e.key === "k") { move(-1); } else if (e.key === "x" && at >= 0) {
      var box = rows()[at].querySelector("input[type=checkbox]");
      if (box) { box.checked = !box.checked; countSelected(); }
    } else if (e.key === "?") {
      var help = document.getElementById("keys");
      if (help) { help.open = !help.open; help.scrollIntoView(); }
    }
  });

  prepare(document);
  if (every) {
    updates.hidden = false;
    say();
    ["focusin", "focusout", "change", "input", "toggle"].forEach(function (what) { document.addEventListener(what, function () { setTimeout(say); }, true); });
    document.addEventListener("selectionchange", say);
    setTimeout(refresh, every);
  }
})();
