// The search of every page, and the list of keys: dialogs that come when they are asked for.
import { combobox } from './parts/combobox.js';
import { button, h, pathOf, put } from './parts/view.js';
import { find as t } from './text/find.js';

/** @type {HTMLDialogElement | null} */
let dialog = null;

/** Opens the search or the keys. */
export function open(what, go) {
  if (!dialog) {
    dialog = /** @type {HTMLDialogElement} */ (h('dialog', { class: 'find' }));
    document.body.append(dialog);
    // A press beside the dialog closes it.
    dialog.addEventListener('click', (event) => {
      if (event.target === dialog) dialog?.close();
    });
  }
  if (dialog.open) dialog.close();
  put(dialog, what === 'keys' ? keys() : search(go));
  dialog.showModal();
}

function search(go) {
  const found = combobox({
    name: 'find',
    placeholder: t.placeholder,
    choose: (symbol) => {
      dialog?.close();
      go(pathOf(symbol));
    },
  });
  found.input.setAttribute('aria-label', t.title);
  found.input.setAttribute('autofocus', '');
  return h('div', { class: 'with combo' }, found.input, found.list);
}

const keys = () =>
  h(
    'div',
    null,
    h('h2', null, t.keys),
    h(
      'dl',
      { class: 'keys' },
      t.keyList.map(([key, words]) => h('div', null, h('dt', null, h('kbd', null, key)), h('dd', null, words))),
    ),
    button(t.close, () => dialog?.close()),
  );
