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

  function apply(form) {
    const section = form.closest("section");
    const wanted = Object.fromEntries(new FormData(form));
    const text = (wanted.text || "").trim().toLowerCase();
    delete wanted.text;
    let shown = 0;
    for (const item of section.querySelectorAll("[data-item]")) {
      const fits =
        Object.entries(wanted).every(([name, value]) => !value || item.dataset[name] === value) &&
        (!text || item.textContent.toLowerCase().includes(text));
      item.hidden = !fits;
      shown += fits;
    }
    for (const group of section.querySelectorAll("[data-group]"))
      group.hidden = !group.querySelector("[data-item]:not([hidden])");
    form.querySelector("[data-shown]").textContent = shown;
    form.classList.toggle("narrowed", shown < section.querySelectorAll("[data-item]").length);
  }
  const forms = document.querySelectorAll("form[data-filter]");
  for (const form of forms) {
    form.addEventListener("input", () => apply(form));
    form.addEventListener("change", () => apply(form));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(() => apply(form)));
  }

  for (const link of document.querySelectorAll("a[data-verdict], a[data-severity]"))
    link.addEventListener("click", () => {
      const [name, value] = Object.entries(link.dataset)[0];
      const form = document.querySelector(link.hash + " form[data-filter]");
      if (!form) return;
      form.reset();
      form.elements[name].value = value;
      apply(form);
    });

  function reveal() {
    const place = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    if (place.hidden) {
      const form = place.closest("section").querySelector("form[data-filter]");
      form.reset();
      apply(form);
      place.scrollIntoView();
    }
  }
  addEventListener("hashchange", reveal);
  // The target of a link that a filter hides is shown before the browser looks for it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    const place = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    const hidden = place && place.closest("[hidden]");
    if (!hidden) return;
    const form = place.closest("section").querySelector("form[data-filter]");
    form.reset();
    for (const item of place.closest("section").querySelectorAll("[data-item],[data-group]")) item.hidden = false;
  });

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

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open]):not(.program):not(.numbers)")];
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
  });
})();
