// How the pages look, chosen in this browser: light or dark, and the colours of gain and loss.
import { look, setLook } from '../data/prefs.js';
import { appearance as t } from '../text/account.js';
import { h } from './view.js';

export function appearance() {
  const group = (name, label, choices) =>
    h(
      'fieldset',
      null,
      h('legend', { class: 'small' }, label),
      Object.entries(choices).map(([value, words]) => {
        const choice = h('input', { type: 'radio', name, value, checked: (look(name) ?? '') === value });
        choice.addEventListener('change', () => setLook(name, value));
        return h('label', null, choice, words);
      }),
    );
  return h(
    'section',
    { class: 'appearance' },
    h('h2', null, t.title),
    group('theme', t.theme, t.themes),
    group('colours', t.colours, t.coloursOf),
  );
}
