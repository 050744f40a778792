import { plural } from '../text.js';

const symbols = (n) => plural(n, 'symbol', 'symbols');

export const lists = {
  edit: 'Edit list',
  make: 'New list',
  rename: 'Rename…',
  renameTitle: 'Rename the list',
  delete: 'Delete…',
  left: 'Move left',
  right: 'Move right',
  name: 'Name of the list',
  nameMissing: 'A list needs a name.',
  nameTaken: 'Another list has this name.',
  create: 'Create',
  save: 'Save',
  cancel: 'Cancel',
  created: (name) => `${name} is created`,
  renamed: (name) => `The list is now called ${name}`,
  movedTo: (name, place, of) => `${name} is ${place} of ${of}`,
  deleteSure: (name, n) => `Delete the list “${name}” with its ${symbols(n)}?`,
  deleteYes: 'Yes, delete',
  keep: 'Keep it',
  deleted: (name) => `${name} is deleted`,
  full: 'An account has at most 10 lists. Delete one first.',
  gone: 'Another tab or device has deleted the list.',
  offer: (n) => `This browser has a list of ${symbols(n)} from before you logged in.`,
  takeOver: (name) => `Add them to “${name}”`,
  leave: 'Leave them',
  takenOver: 'They are added. Without a login this browser shows its own list as before.',
};
