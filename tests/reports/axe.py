"""axe-core's rules on a page in a browser."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
CONTRAST = "color-contrast"
SHADED = "{include: [['[data-shade]']]}"
"""What `mark_shades` has marked, as axe's context."""

_MARK = """
const grounds = new Map([[null, ""]]);
const ground = (part) => {
  if (!grounds.has(part)) {
    const style = getComputedStyle(part);
    const plain = style.backgroundColor === "rgba(0, 0, 0, 0)" && style.backgroundImage === "none";
    const own = plain && style.opacity === "1" && style.filter === "none" && style.mixBlendMode === "normal" ? ""
      : [style.backgroundColor, style.backgroundImage, style.opacity, style.filter, style.mixBlendMode].join(" ");
    grounds.set(part, own ? `${ground(part.parentElement)} on ${own}` : ground(part.parentElement));
  }
  return grounds.get(part);
};
for (const part of document.querySelectorAll("[data-shade]")) part.removeAttribute("data-shade");
const shades = new Set();
let texts = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const part = node.parentElement;
  if (!node.data.trim() || !part.checkVisibility()) continue;
  texts += 1;
  const style = getComputedStyle(part);
  const font = [style.fontSize, style.fontWeight, style.textShadow, style.webkitTextStroke, part.localName];
  const shade = [style.color, style.fill, ...font, ground(part)].join(" ");
  if (!shades.has(shade)) part.dataset.shade = "";
  shades.add(shade);
}
return [shades.size, texts];
"""


def mark_shades(driver: Any) -> tuple[int, int]:
    """Mark the first of all shown texts that are alike; gives how many differ, and how many texts there are.

    Alike are those of one colour, size and weight whose elements, and all around them, have the same backgrounds and
    opacities: nothing else makes their contrast, so that one answers for all.
    """
    shades, texts = driver.execute_script(_MARK)
    return int(shades), int(texts)


def axe_violations(
    driver: Any,
    *,
    context: str = "document",
    only: tuple[str, ...] = TAGS,
    without: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The rules of axe-core that the page breaks, each with what breaks it first."""
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    # Run by the debugger, whom the page's policy does not bind.
    driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
    rules = {name: {"enabled": False} for name in without}
    options = {"runOnly": list(only), "rules": rules, "resultTypes": ["violations"]}
    answer = driver.execute_cdp_cmd(
        "Runtime.evaluate",
        {
            "expression": f"axe.run({context}, {json.dumps(options)}).then((r) => JSON.stringify(r.violations))",
            "awaitPromise": True,
            "returnByValue": True,
        },
    )
    violations = json.loads(answer["result"]["value"])
    return {item["id"]: [node["target"] for node in item["nodes"][:3]] for item in violations}
