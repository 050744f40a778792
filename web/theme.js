// Runs before the first paint, so that a chosen appearance does not flash as the other one.
(() => {
  const kept = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const root = document.documentElement;
  if (['light', 'dark'].includes(kept('theme'))) root.dataset.theme = kept('theme');
  if (kept('colours') === 'blue') root.dataset.colours = 'blue';
  if (kept('amounts') === 'hidden') root.dataset.amounts = 'hidden';
})();
