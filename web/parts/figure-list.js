// Named figures beside each other.
import { h } from './view.js';

/** Of each its name, its value, and where there are, its class and an explanation. @param {any[][]} list */
export const figureList = (list) =>
  h(
    'dl',
    { class: 'figures' },
    list.map(([name, value, kind, title]) => h('div', { title }, h('dt', null, name), h('dd', { class: kind }, value))),
  );
