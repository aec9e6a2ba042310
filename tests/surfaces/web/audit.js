// What WCAG 2.2 AA asks of a page, as far as a script can see it. Returns a list of problems.
() => {
  const problems = [];
  const say = (what, element) => problems.push(`${what}: ${element.outerHTML.slice(0, 120)}`);

  // Contrast: 4.5 for text, 3 for large text, against the nearest background that is not transparent.
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((channels(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility() || element.closest(".sr, .skip, option, svg, noscript")) continue;
    const style = getComputedStyle(element);
    const [one, other] = [luminance(style.color), luminance(background(element))].sort((a, b) => b - a);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const contrast = (one + 0.05) / (other + 0.05);
    seen += 1;
    if (contrast < (large ? 3 : 4.5)) say(`contrast ${contrast.toFixed(2)}`, element);
  }
  if (!seen) problems.push("no text");

  // Structure: language, title, landmarks, headings in order, unique ids.
  if (!document.documentElement.lang || !document.title.trim()) problems.push("no language or title");
  for (const name of ["header", "nav", "main", "h1"]) {
    if (document.querySelectorAll(name).length !== 1) problems.push(`not one ${name}`);
  }
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3")) {
    if (Number(heading.tagName[1]) > level + 1) say("heading skips a level", heading);
    level = Number(heading.tagName[1]);
  }
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) problems.push(`id twice: ${id}`);
  for (const element of document.querySelectorAll("[aria-labelledby]")) {
    if (!document.getElementById(element.getAttribute("aria-labelledby"))) say("label is missing", element);
  }

  // Names: what can be used has a name, and is large enough to be hit (24 pixels, except links in text).
  for (const element of document.querySelectorAll("a, button, input:not([type=hidden]), textarea, summary")) {
    if (!(element.textContent.trim() || element.labels?.length || element.ariaLabel)) say("no name", element);
    const { width, height } = element.getBoundingClientRect();
    if (element.matches("button, input, textarea, .button") && (width < 24 || height < 24)) say("too small", element);
  }
  for (const element of document.querySelectorAll("svg:not([aria-hidden])")) {
    if (element.getAttribute("role") !== "img" || !element.ariaLabel) say("drawing without a name", element);
  }
  return problems;
};
