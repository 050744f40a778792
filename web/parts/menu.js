// Puts a popover where it stands: below what has opened it, within the window.

/** @param {HTMLElement} menu @param {Element} opener */
export function placeMenu(menu, opener) {
  const box = opener.getBoundingClientRect();
  menu.style.left = `${Math.max(8, Math.min(box.left, innerWidth - menu.offsetWidth - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(box.bottom + 4, innerHeight - menu.offsetHeight - 8))}px`;
}
