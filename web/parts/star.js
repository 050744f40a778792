// Adds a symbol to the watch lists and takes it off: by one press where there is one list, else by a box for each.
import { onSession, session } from '../data/api.js';
import { called } from '../data/format.js';
import { change, isFull, keyOf, listOf, lists, read, withSymbol, withoutSymbol } from '../data/watchlists.js';
import { symbol as t } from '../text/symbol.js';
import { placeMenu } from './menu.js';
import { attr, h, put, say } from './view.js';

/** Makes the button work; returns what ends it. */
export function star(node, symbol, announce) {
  const menu = h('div', { class: 'menu', popover: '', role: 'group', 'aria-label': t.listsOf(called(symbol)) });
  const isIn = (list) => list.symbols.includes(symbol);
  const draw = () => {
    const has = lists().some(isIn);
    say(node, has ? t.watched : t.watch);
    attr(node, 'aria-label', has ? t.unwatchOf(called(symbol)) : t.watchOf(called(symbol)));
  };
  const toggle = async (key) => {
    const list = listOf(key);
    const has = isIn(list);
    if (!has && isFull(list)) {
      announce(t.full);
      return;
    }
    const doing = change((has ? withoutSymbol : withSymbol)(key, symbol));
    draw();
    try {
      if (await doing) announce(has ? t.removed(called(symbol)) : t.added(called(symbol)));
    } catch (problem) {
      announce(problem.message);
    }
    draw();
  };
  const boxOf = (list) => {
    const box = h('input', { type: 'checkbox', checked: isIn(list) });
    box.addEventListener('change', async () => {
      await toggle(keyOf(list));
      box.checked = isIn(listOf(keyOf(list)));
    });
    return h('label', null, box, list.name);
  };
  const press = () => {
    const all = lists();
    if (all.length === 1) toggle(keyOf(all[0]));
    else if (menu.matches(':popover-open')) menu.hidePopover();
    else {
      put(menu, all.map(boxOf));
      menu.showPopover();
      placeMenu(menu, node);
      menu.querySelector('input')?.focus();
    }
  };
  let isRead = false;
  const begin = async () => {
    if (isRead || !session.known) return;
    isRead = true;
    try {
      await read();
      draw();
      attr(node, 'aria-disabled', null);
      node.addEventListener('click', press);
    } catch (problem) {
      node.title = problem.message;
    }
  };
  node.after(menu);
  const end = onSession(begin);
  begin();
  return end;
}
