// What a browser remembers: appearance, the watch list of who is not logged in, and how tables are sorted.
// Nothing of a portfolio. Storage may be switched off: then it is not kept.

/** @param {string} name */
export function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** @param {string} name @param {string | null} value */
export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    /* it holds for this visit */
  }
}

const root = document.documentElement;

/** @type {Set<() => void>} */
const watchers = new Set();
/** Calls `changed` when amounts are hidden or shown, or the colours change. @param {() => void} changed */
export const onAppearance = (changed) => {
  watchers.add(changed);
  return () => {
    watchers.delete(changed);
  };
};

/** `theme`, `amounts` or `colours`; nothing where it is as usual. @param {string} name */
export const look = (name) => root.dataset[name];

/** @param {string} name @param {string | undefined} wanted */
export function setLook(name, wanted) {
  if (wanted) root.dataset[name] = wanted;
  else delete root.dataset[name];
  keep(name, wanted || null);
  for (const changed of watchers) changed();
}

export const amountsHidden = () => look('amounts') === 'hidden';
