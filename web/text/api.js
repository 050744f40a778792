export const api = {
  title: 'The API',
  about: 'About this API',
  asJson: 'As JSON (OpenAPI)',
  find: 'Find',
  access: 'Who may:',
  who: { public: 'everybody', user: 'a user, with a token', admin: 'the operator' },
  parameters: 'Parameters',
  body: 'Body',
  answers: 'Answers',
  optional: 'may be absent',
  listOf: 'list of',
  members: 'Members',
};
