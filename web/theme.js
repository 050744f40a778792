// Runs before the first paint, so that a chosen appearance does not flash as the other one.
(() => {
  const kept = (name) => {
    try { return localStorage.getItem(name) ?? ''; } catch { return ''; }
  };
  const look = document.documentElement.dataset;
  if (['light', 'dark'].includes(kept('theme'))) look.theme = kept('theme');
  if (kept('colours') === 'blue') look.colours = 'blue';
  if (kept('amounts') === 'hidden') look.amounts = 'hidden';
})();
