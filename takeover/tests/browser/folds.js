// What is wrong with the page's folds, a line each: every one is opened, looked at and closed.
(() => {
  const found = [];
  const height = (element) => element.getBoundingClientRect().height;
  for (const fold of document.querySelectorAll("details")) {
    const summary = fold.querySelector("summary");
    const name = summary.textContent.trim();
    const shut = height(fold);
    summary.click();
    if (!fold.open) found.push(`does not open: ${name}`);
    if (height(fold) <= shut) found.push(`has nothing in it: ${name}`);
    summary.click();
    if (fold.open || height(fold) !== shut) found.push(`does not close: ${name}`);
    if (fold.parentElement.closest("details")) found.push(`lies in another: ${name}`);
  }
  return found;
})()
