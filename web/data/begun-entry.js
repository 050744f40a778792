// A journal entry that was begun on another page, until the journal takes it. Only this tab's memory has it.

/** @type {{ [name: string]: string } | null} */
let begun = null;

/** @param {{ [name: string]: string }} values */
export function begin(values) {
  begun = values;
}

export function take() {
  const values = begun;
  begun = null;
  return values;
}
