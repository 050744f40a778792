// What can be done with watch lists as a whole: make, name, move and delete them, and take over that of the browser.
// It comes with the lists of an account.
import * as watched from '../data/watchlists.js';
import { lists as t } from '../text/lists.js';
import { attempt, field, onSubmit, problemPlace } from './form.js';
import { placeMenu } from './menu.js';
import { button, h, memo, put, say, uid } from './view.js';

/**
 * Asks for a name in a dialog; `own` is the key of the list that has it already.
 * @param {{ title: string, yes: string, name?: string, own?: any, send: (name: string) => Promise<void> }} wanted
 */
function askName({ title, yes, name = '', own = null, send }) {
  const dialog = /** @type {HTMLDialogElement} */ (h('dialog', { 'aria-label': title }));
  const asked = field({ name: 'name', label: t.name, value: name, maxlength: watched.MAX.name, autocomplete: 'off' });
  const problem = problemPlace();
  const form = h(
    'form',
    { method: 'post', novalidate: true },
    h('h2', null, title),
    asked.node,
    problem,
    h(
      'p',
      { class: 'actions' },
      button(t.cancel, () => dialog.close()),
      h('button', { type: 'submit', class: 'primary' }, yes),
    ),
  );
  onSubmit(form, [asked], problem, async () => {
    const given = asked.input.value.trim();
    if (given === '' || watched.isTaken(given, own)) {
      asked.fail(given === '' ? t.nameMissing : t.nameTaken);
      asked.input.focus();
      return;
    }
    await send(given);
    dialog.close();
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  put(dialog, form);
  dialog.showModal();
  asked.input.select();
}

/**
 * What shows the lists: `list` is the one that is shown, `choose` shows another, `edit` makes a change of it.
 * @typedef {object} Shown
 * @property {() => List} list
 * @property {(key: number | string) => void} choose
 * @property {(what: Edit, words: () => string) => void} edit
 * @property {HTMLElement} problem
 * @property {(words: string) => void} announce
 * @property {() => void} focus
 */
/** @typedef {Parameters<typeof watched.change>[0]} Edit */

/** The buttons, and the offer. @param {Shown} shown */
export function listTools(shown) {
  const refuse = () => {
    shown.problem.hidden = false;
    say(shown.problem, t.full);
  };
  const acts = actions(shown, refuse);
  const offer = h('div', { class: 'panel', hidden: true });
  return {
    buttons: [...menuOf(shown, acts), button(t.make, acts.make, { class: 'quiet' })],
    offer,
    draw: () => drawOffer(offer, shown, refuse),
  };
}

/** @param {Shown} shown @param {() => void} refuse */
function actions({ list, choose, edit, announce }, refuse) {
  const keyOf = () => watched.keyOf(list());
  return {
    make: () => {
      if (watched.lists().length >= watched.MAX.lists) {
        refuse();
        return;
      }
      const send = async (/** @type {string} */ name) => {
        announce((await watched.change(watched.withList(name))) ? t.created(name) : t.full);
        choose(name);
      };
      askName({ title: t.make, yes: t.create, send });
    },
    rename: () => {
      const own = keyOf();
      const send = async (/** @type {string} */ name) => {
        announce((await watched.change(watched.withName(own, name))) ? t.renamed(name) : t.gone);
        choose(own);
      };
      askName({ title: t.renameTitle, yes: t.save, name: list().name, own, send });
    },
    move: (/** @type {number} */ by) => {
      const all = watched.lists();
      const { name } = list();
      const place = all.indexOf(list()) + by + 1;
      edit(watched.withListMoved(keyOf(), by), () => t.movedTo(name, place, all.length));
    },
    erase: async () => {
      const { ask } = await import('./dialog.js');
      const own = keyOf();
      const { name, symbols } = list();
      if (await ask(t.deleteSure(name, symbols.length), t.deleteYes, t.keep))
        edit(watched.withoutList(own), () => t.deleted(name));
    },
  };
}

/** What is done with the list that is shown: what opens the menu, and the menu. @param {Shown} shown @param {ReturnType<typeof actions>} acts */
function menuOf({ list }, { rename, move, erase }) {
  const id = uid('list');
  const opener = button(t.edit, null, { class: 'quiet', popovertarget: id });
  const menu = h('div', { class: 'menu', id, popover: '' });
  /** @type {(label: string, run: () => void) => HTMLElement} */
  const act = (label, run) =>
    button(
      label,
      () => {
        menu.hidePopover();
        run();
      },
      { class: 'quiet' },
    );
  menu.addEventListener('toggle', () => {
    const all = watched.lists();
    const at = all.indexOf(list());
    put(menu, [
      act(t.rename, rename),
      at > 0 && act(t.left, () => move(-1)),
      at < all.length - 1 && act(t.right, () => move(1)),
      all.length > 1 && act(t.delete, erase),
    ]);
    placeMenu(menu, opener);
  });
  return [opener, menu];
}

/** The list from before the login is offered once. @param {HTMLElement} offer @param {Shown} shown @param {() => void} refuse */
function drawOffer(offer, { list, choose, problem, announce, focus }, refuse) {
  const own = watched.offer();
  offer.hidden = own.length === 0;
  const { name } = watched.lists()[0];
  const takeOver = () =>
    attempt([], problem, async () => {
      if (!(await watched.change(watched.withSymbols(own)))) {
        refuse();
        return;
      }
      watched.offered();
      announce(t.takenOver);
      choose(watched.keyOf(watched.lists()[0]));
      focus();
    });
  const leave = () => {
    watched.offered();
    choose(watched.keyOf(list()));
    focus();
  };
  memo(offer, [own, name], () =>
    put(
      offer,
      own.length > 0 && [
        h('p', null, t.offer(own.length)),
        h('p', { class: 'actions' }, button(t.takeOver(name), takeOver, { class: 'primary' }), button(t.leave, leave)),
      ],
    ),
  );
}
