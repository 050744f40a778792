// Runs before the first paint, so that a chosen appearance does not flash as the other one.
for (const name of ['theme', 'colours', 'amounts', 'notice']) {
  try {
    document.documentElement.dataset[name] = localStorage.getItem(name) ?? '';
  } catch {
    /* as usual */
  }
}
