// A question that must be answered before something is lost or deleted.
import { button, h, put } from './view.js';

/** Whether the person says yes; `more` stands between question and buttons. */
export function ask(question, yes, no, more = null) {
  const dialog = /** @type {HTMLDialogElement} */ (h('dialog', { role: 'alertdialog', 'aria-label': question }));
  document.body.append(dialog);
  return new Promise((resolve) => {
    let said = false;
    put(
      dialog,
      h('p', null, question),
      more,
      h(
        'p',
        { class: 'actions' },
        button(no, () => dialog.close(), { autofocus: '' }),
        button(
          yes,
          () => {
            said = true;
            dialog.close();
          },
          { class: 'danger' },
        ),
      ),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(said);
    });
    dialog.showModal();
  });
}
