// Which columns of the holdings are shown. It comes when it is asked for.
import { keep } from '../data/prefs.js';
import { placeMenu } from './menu.js';
import { h, put } from './view.js';

/**
 * Draws the choice into the popover, where it stands: below what has opened it.
 * @param {{
 *   menu: HTMLElement,
 *   opener: HTMLElement,
 *   columns: Column<any>[],
 *   hidden: Set<string>,
 *   changed: () => void,
 * }} wanted
 */
export function showChoice({ menu, opener, columns, hidden, changed }) {
  put(
    menu,
    columns
      .filter((column) => !column.phone && !column.fileOnly)
      .map(({ key, of, label }) => {
        const name = key ?? of ?? '';
        const box = h('input', { type: 'checkbox', checked: !hidden.has(name) });
        box.addEventListener('change', () => {
          if (!hidden.delete(name)) hidden.add(name);
          keep('columns portfolio', [...hidden].join(',') || null);
          changed();
        });
        return h('label', null, box, label);
      }),
  );
  placeMenu(menu, opener);
}
