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

  // In a narrow window the rows of a table are cards; a cell is told under the name of its column.
  const narrow = matchMedia("(max-width:40rem)");
  function nameCells(within) {
    if (narrow.matches) for (const table of within.querySelectorAll("table:not(.rows)")) nameCellsOf(table);
  }
  function nameCellsOf(table) {
    table.classList.add("rows");
    const names = [...(table.tHead?.rows[0].cells ?? [])].map((head) =>
      ["en", "zh"].map((language) => {
        const copy = head.cloneNode(true);
        for (const other of copy.querySelectorAll(`.l:not([lang=${language}])`)) other.remove();
        const text = copy.textContent.trim();
        return head.querySelector(".l") ? text.charAt(0).toUpperCase() + text.slice(1) : text;
      }),
    );
    const taken = []; // by column: rows that a cell above goes on for
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
      let at = 0;
      const skip = () => {
        while (taken[at] > 0) taken[at++] -= 1;
      };
      for (const cell of row.cells) {
        skip();
        if (names[at] && cell.colSpan === 1 && (at || cell.localName === "td"))
          [cell.dataset.en, cell.dataset.zh] = names[at];
        cell.classList.toggle("blank", !cell.textContent.trim());
        for (let left = cell.colSpan; left; left -= 1) taken[at++] = cell.rowSpan - 1;
      }
      skip();
    }
  }
  narrow.addEventListener("change", () => nameCells(document));
  nameCells(document);

  // Parts of a large report are compressed until somebody opens them.
  async function unpack(part) {
    const packed = part.querySelector(":scope > template.packed");
    if (!packed) return;
    const place = document.createElement("div");
    packed.replaceWith(place);
    const bytes = Uint8Array.from(atob(packed.content.textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    place.innerHTML = await new Response(stream).text();
    nameCells(place);
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
