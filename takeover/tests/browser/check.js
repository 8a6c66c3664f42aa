// What is wrong with the page as it is shown now, a line each.
((media) => {
  const found = [];
  const name = (element) => {
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
    return `${element.tagName.toLowerCase()}.${element.className} "${text}"`;
  };
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width)
    found.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${width}`);

  // A colour as red, green, blue (0 to 255) and opacity (0 to 1).
  const parse = (text) => {
    const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
    return { rgb: [red, green, blue], alpha };
  };
  const over = (top, below) => top.rgb.map((c, i) => c * top.alpha + below[i] * (1 - top.alpha));
  const canvas = matchMedia("(prefers-color-scheme: dark)").matches && media !== "print" ? 18 : 255;
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      layers.push(colour);
      if (colour.alpha === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [canvas, canvas, canvas]);
  };
  // Relative luminance and contrast (WCAG 2.2).
  const luminance = (rgb) => {
    const [red, green, blue] = rgb.map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [dark, bright] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };

  const told = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility({ contentVisibilityAuto: true })) {
      if (media === "print" && node.textContent.trim() && element.tagName !== "STYLE")
        found.push(`not on paper: ${name(element)}`);
      continue;
    }
    count += 1;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      const scroll = media === "print" ? null : element.closest(".scroll");
      if (!scroll && (box.right > width + 0.5 || box.left < -0.5))
        found.push(`sticks out to ${box.left}..${box.right}: ${name(element)}`);
    }
    const behind = background(element);
    const ratio = contrast(over(parse(getComputedStyle(element).color), behind), behind);
    const what = `contrast ${ratio.toFixed(2)}: ${element.tagName} .${element.className} ` +
      `in .${element.parentElement.className}`;
    if (ratio < 4.5 && !told.has(what)) {
      told.add(what);
      found.push(what);
    }
  }
  if (count < 10) found.push(`only ${count} texts are shown`);
  return found;
})
