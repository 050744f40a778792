// A field that suggests instruments, operated as WAI-ARIA describes comboboxes.
import { call, withQuery } from '../data/api.js';
import { called } from '../data/format.js';
import { text } from '../text.js';
import { attr, h, put, uid } from './view.js';

const WAIT_MS = 250;

/**
 * `choose` gets what was taken.
 * @param {{
 *   name: string,
 *   value?: string,
 *   placeholder?: string,
 *   choose: (symbol: string, name: string | null) => void,
 * }} wanted
 */
export function combobox({ name, value = '', placeholder, choose }) {
  const { input, list } = lay(name, value, placeholder);
  /** @type {{ symbol: string, name: string | null }[]} */
  let found = [];
  let at = -1;
  let turn = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const close = () => {
    turn += 1;
    clearTimeout(timer);
    at = -1;
    open(input, list, false);
  };
  const mark = (/** @type {number} */ next) => {
    at = (next + found.length) % found.length;
    [...list.children].forEach((option, index) => attr(option, 'aria-selected', String(index === at)));
    attr(input, 'aria-activedescendant', list.children[at].id);
    list.children[at].scrollIntoView({ block: 'nearest' });
  };
  const take = (/** @type {number} */ index) => {
    const { symbol, name: label } = found[index];
    input.value = symbol;
    close();
    input.dispatchEvent(new Event('input', { bubbles: true }));
    close();
    choose(symbol, label);
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
      at = -1;
      put(list, found.length ? found.map((one, index) => optionOf(list, one, index, take)) : noOption());
      open(input, list, true);
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
  input.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const act = list.hidden
      ? { ArrowDown: look }[event.key]
      : {
          ArrowDown: found.length && (() => mark(at + 1)),
          ArrowUp: found.length && (() => mark(at < 0 ? found.length - 1 : at - 1)),
          Enter: found.length && (() => take(Math.max(at, 0))),
          Escape: close,
        }[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  });
  return { input, list, close };
}

/** The field and its list, which is closed. @param {string} name @param {string} value @param {string | undefined} placeholder */
function lay(name, value, placeholder) {
  const id = uid('options');
  const list = h('ul', { role: 'listbox', id, class: 'options', hidden: true, 'aria-label': text.search.results });
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
    'aria-controls': id,
    'aria-autocomplete': 'list',
  });
  return { input, list };
}

/** Opens or closes the list, with nothing marked in it. @param {Element} input @param {HTMLElement} list @param {boolean} is */
function open(input, list, is) {
  attr(input, 'aria-activedescendant', null);
  list.hidden = !is;
  attr(input, 'aria-expanded', String(is));
}

/**
 * @param {Element} list
 * @param {{ symbol: string, name: string | null }} found
 * @param {number} index
 * @param {(index: number) => void} take
 */
function optionOf(list, { symbol, name }, index, take) {
  const option = h(
    'li',
    { role: 'option', id: `${list.id}-${index}`, 'aria-selected': 'false' },
    h('b', null, called(symbol)),
    name && h('span', null, name),
  );
  // The field keeps the focus, so that a press is not first a blur.
  option.addEventListener('pointerdown', (/** @type {Event} */ event) => {
    event.preventDefault();
    take(index);
  });
  return option;
}

const noOption = () =>
  h('li', { class: 'none', role: 'option', 'aria-disabled': 'true', 'aria-selected': 'false' }, text.search.none);
