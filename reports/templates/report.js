"use strict";
(() => {
  const root = document.documentElement;
  const buttons = document.querySelectorAll("button[data-language]");

  function speak(language) {
    root.lang = language;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.language === language));
    for (const option of document.querySelectorAll("option[data-en]")) option.textContent = option.dataset[language];
    for (const option of document.querySelectorAll('option[value=""]')) option.textContent = language === "zh" ? "全部" : "all";
  }
  for (const button of buttons) button.addEventListener("click", () => speak(button.dataset.language));
  speak(root.lang);

  // Parts of a large report are compressed until somebody opens them.
  async function unpack(part) {
    const packed = part.querySelector(":scope > template.packed");
    if (!packed) return;
    const place = document.createElement("div");
    packed.replaceWith(place);
    const bytes = Uint8Array.from(atob(packed.content.textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    place.innerHTML = await new Response(stream).text();
    await unpackAll(place.querySelectorAll("details[open]"));
  }
  const unpackAll = (parts) => Promise.all([...parts].map(unpack));
  document.addEventListener("toggle", (event) => event.target.open && unpack(event.target), true);

  async function apply(form) {
    const section = form.closest("section");
    const wanted = Object.fromEntries(new FormData(form));
    const text = (wanted.text || "").trim().toLowerCase();
    delete wanted.text;
    const narrow = text || Object.values(wanted).some(Boolean);
    const scope = form.dataset.filter === "operators" ? section.querySelector(".start") : section;
    if (narrow) await unpackAll(scope.querySelectorAll("details"));
    let shown = 0;
    for (const item of scope.querySelectorAll("[data-item]")) {
      const fits =
        Object.entries(wanted).every(([name, value]) => !value || item.dataset[name] === value) &&
        (!text || item.textContent.toLowerCase().includes(text));
      item.hidden = !fits;
      shown += fits;
    }
    for (const group of scope.querySelectorAll("[data-group]"))
      group.hidden = narrow && !group.querySelector("[data-item]:not([hidden])");
    for (const part of scope.querySelectorAll(".fold, .quiet")) {
      const found = part.querySelector("[data-item]:not([hidden])");
      part.open = Boolean(narrow && found);
    }
    const output = form.querySelector("[data-shown]");
    output.textContent = narrow ? shown : output.dataset.shown;
  }
  const forms = document.querySelectorAll("form[data-filter]");
  for (const form of forms) {
    form.addEventListener("input", () => apply(form));
    form.addEventListener("change", () => apply(form));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(() => apply(form)));
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-verdict], a[data-severity]");
    const form = link && document.querySelector(link.hash + " form[data-filter]");
    if (!form) return;
    const [name, value] = Object.entries(link.dataset)[0];
    form.reset();
    form.elements[name].value = value;
    apply(form);
  });

  // What a link leads to is unpacked, opened and shown, whatever a filter hides.
  async function reveal() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (!id) return;
    const clause = id.match(/^clause-(\w+)-/);
    const part = clause && document.getElementById(`trace-${clause[1]}`);
    if (part) await unpack(part);
    const place = document.getElementById(id);
    if (!place) return;
    if (place.closest("[hidden]")) {
      const form = place.closest("section").querySelector("form[data-filter]");
      form.reset();
      await apply(form);
    }
    if (place.localName === "details") place.open = true;
    for (let around = place.closest("details"); around; around = around.parentElement.closest("details")) {
      await unpack(around);
      around.open = true;
    }
    place.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) reveal();
  });
  reveal();

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  if ("IntersectionObserver" in window) {
    const seen = new IntersectionObserver(
      (entries) => {
        for (const entry of entries)
          if (entry.isIntersecting) {
            for (const link of links.values()) link.removeAttribute("aria-current");
            links.get(entry.target.id)?.setAttribute("aria-current", "true");
          }
      },
      { rootMargin: "-20% 0px -70% 0px" },
    );
    for (const section of document.querySelectorAll("main > section")) seen.observe(section);
  }
})();
