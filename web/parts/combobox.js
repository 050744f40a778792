// A field that suggests instruments, operated as WAI-ARIA describes comboboxes.
import { call, withQuery } from '../data/api.js';
import { text } from '../text.js';
import { attr, h, put, uid } from './view.js';

const WAIT_MS = 250;

/** @param {any} options */
export function combobox({ name, value = '', placeholder, choose }) {
  const listId = uid('options');
  const list = h('ul', {
    role: 'listbox',
    id: listId,
    class: 'options',
    hidden: true,
    'aria-label': text.search.results,
  });
  const input = h('input', {
    name,
    value,
    placeholder,
    type: 'text',
    role: 'combobox',
    autocomplete: 'off',
    spellcheck: 'false',
    autocapitalize: 'characters',
    'aria-expanded': 'false',
    'aria-controls': listId,
    'aria-autocomplete': 'list',
  });
  /** @type {{ symbol: string, name: string | null }[]} */
  let found = [];
  let at = -1;
  let turn = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const close = () => {
    turn += 1;
    clearTimeout(timer);
    list.hidden = true;
    at = -1;
    attr(input, 'aria-expanded', 'false');
    attr(input, 'aria-activedescendant', null);
  };
  const mark = (next) => {
    at = (next + found.length) % found.length;
    [...list.children].forEach((option, index) => attr(option, 'aria-selected', String(index === at)));
    attr(input, 'aria-activedescendant', list.children[at].id);
    list.children[at].scrollIntoView({ block: 'nearest' });
  };
  const take = (index) => {
    const { symbol, name: label } = found[index];
    input.value = symbol;
    close();
    input.dispatchEvent(new Event('input', { bubbles: true }));
    close();
    choose(symbol, label);
  };
  const draw = () => {
    at = -1;
    attr(input, 'aria-activedescendant', null);
    put(
      list,
      found.map(({ symbol, name: label }, index) => {
        const option = h(
          'li',
          { role: 'option', id: `${listId}-${index}`, 'aria-selected': 'false' },
          h('b', null, symbol),
          label && h('span', null, label),
        );
        // The field keeps the focus, so that a press is not first a blur.
        option.addEventListener('pointerdown', (event) => {
          event.preventDefault();
          take(index);
        });
        return option;
      }),
    );
    if (!found.length)
      put(
        list,
        h('li', { class: 'none', role: 'option', 'aria-disabled': 'true', 'aria-selected': 'false' }, text.search.none),
      );
    list.hidden = false;
    attr(input, 'aria-expanded', 'true');
  };
  const look = async () => {
    const mine = ++turn;
    const asked = input.value.trim();
    if (asked === '') {
      close();
      return;
    }
    try {
      const answer = await call(withQuery('/api/market/search', { q: asked }));
      if (mine !== turn) return;
      found = answer.instruments;
      draw();
    } catch {
      if (mine === turn) close();
    }
  };
  input.addEventListener('input', () => {
    clearTimeout(timer);
    turn += 1;
    timer = setTimeout(look, WAIT_MS);
  });
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' && list.hidden) {
      look();
      event.preventDefault();
    } else if (list.hidden) return;
    else if (event.key === 'ArrowDown' && found.length) {
      mark(at + 1);
      event.preventDefault();
    } else if (event.key === 'ArrowUp' && found.length) {
      mark(at < 0 ? found.length - 1 : at - 1);
      event.preventDefault();
    } else if (event.key === 'Enter' && found.length) {
      take(Math.max(at, 0));
      event.preventDefault();
    } else if (event.key === 'Escape') {
      close();
      event.preventDefault();
    }
  });
  return { input, list, close };
}
