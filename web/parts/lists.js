// What can be done with watch lists as a whole: make, name, move and delete them, and take over that of the browser.
// It comes with the lists of an account.
import * as watched from '../data/watchlists.js';
import { lists as t } from '../text/lists.js';
import { attempt, field, onSubmit, problemPlace } from './form.js';
import { placeMenu } from './menu.js';
import { button, h, memo, put, say, uid } from './view.js';

/** Asks for a name in a dialog; `own` is the key of the list that has it already. */
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

/** The buttons, and the offer; `list` is the list that is shown, `choose` shows another. */
export function listTools({ list, choose, edit, problem, announce, focus }) {
  const keyOf = () => watched.keyOf(list());
  const refuse = () => {
    problem.hidden = false;
    say(problem, t.full);
  };
  const make = () => {
    if (watched.lists().length >= watched.MAX.lists) {
      refuse();
      return;
    }
    const send = async (name) => {
      announce((await watched.change(watched.withList(name))) ? t.created(name) : t.full);
      choose(name);
    };
    askName({ title: t.make, yes: t.create, send });
  };
  const rename = () => {
    const own = keyOf();
    const send = async (name) => {
      announce((await watched.change(watched.withName(own, name))) ? t.renamed(name) : t.gone);
      choose(own);
    };
    askName({ title: t.renameTitle, yes: t.save, name: list().name, own, send });
  };
  const move = (by) => {
    const all = watched.lists();
    const { name } = list();
    const place = all.indexOf(list()) + by + 1;
    edit(watched.withListMoved(keyOf(), by), () => t.movedTo(name, place, all.length));
  };
  const erase = async () => {
    const { ask } = await import('./dialog.js');
    const [own, { name, symbols }] = [keyOf(), list()];
    if (await ask(t.deleteSure(name, symbols.length), t.deleteYes, t.keep))
      edit(watched.withoutList(own), () => t.deleted(name));
  };

  const id = uid('list');
  const opener = button(t.edit, null, { class: 'quiet', popovertarget: id });
  const menu = h('div', { class: 'menu', id, popover: '' });
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

  const offer = h('div', { class: 'panel', hidden: true });
  const takeOver = (own) =>
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
    choose(keyOf());
    focus();
  };
  /** The list from before the login is offered once. */
  const draw = () => {
    const own = watched.offer();
    offer.hidden = own.length === 0;
    const { name } = watched.lists()[0];
    memo(offer, [own, name], () =>
      put(
        offer,
        own.length > 0 && [
          h('p', null, t.offer(own.length)),
          h(
            'p',
            { class: 'actions' },
            button(t.takeOver(name), () => takeOver(own), { class: 'primary' }),
            button(t.leave, leave),
          ),
        ],
      ),
    );
  };
  return { buttons: [opener, menu, button(t.make, make, { class: 'quiet' })], offer, draw };
}
