//! No file of the product leads back to itself by what it imports: each can be read before those
//! that use it.
//!
//! A re-export by a module's `mod.rs` is followed to the file that has the item and is no import
//! itself. What tests import does not count.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::budget::product;
use crate::support::source::{Source, expect_none};

/// A path from the root of the crate: `["http", "server", "listener", "Listener"]`.
type Place = Vec<String>;

/// What one file names of other modules.
#[derive(Default)]
struct Names {
    module: Place,
    /// Each path that the file imports, under the name by which it uses it.
    imports: Vec<(String, Place)>,
    /// Those that it passes on.
    passed_on: Vec<(String, Place)>,
    /// Paths within expressions and types, as they stand.
    inline: Vec<Place>,
}

impl Names {
    fn of(source: &Source) -> Self {
        let mut names = Self {
            module: module_of(&source.path),
            ..Self::default()
        };
        names.visit_file(&syn::parse_file(&source.text).unwrap());
        names
    }

    /// The path from the root; `None` for another crate's.
    fn absolute(&self, path: &[String]) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        let base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                let kept = self.module.len().checked_sub(ups)?;
                return Some([&self.module[..kept], &path[ups..]].concat());
            }
            _ => {
                let (_, imported) = self.imports.iter().find(|(name, _)| name == first)?;
                imported.clone()
            }
        };
        Some([base.as_slice(), rest].concat())
    }

    fn add_tree(&mut self, tree: &syn::UseTree, before: &[String], is_passed_on: bool) {
        let with = |part: String| [before, &[part]].concat();
        match tree {
            syn::UseTree::Path(path) => {
                self.add_tree(&path.tree, &with(path.ident.to_string()), is_passed_on);
            }
            syn::UseTree::Group(group) => {
                for part in &group.items {
                    self.add_tree(part, before, is_passed_on);
                }
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                let shown = before.last().cloned().unwrap_or_default();
                self.add(shown, before, is_passed_on);
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.add(name.clone(), &with(name), is_passed_on);
            }
            syn::UseTree::Rename(renamed) => {
                let path = with(renamed.ident.to_string());
                self.add(renamed.rename.to_string(), &path, is_passed_on);
            }
            syn::UseTree::Glob(_) => self.add(String::new(), before, is_passed_on),
        }
    }

    fn add(&mut self, name: String, path: &[String], is_passed_on: bool) {
        // A path that begins with a module of this file's own.
        let local = [&self.module, path].concat();
        let place = self.absolute(path).unwrap_or(local);
        match is_passed_on {
            true => self.passed_on.push((name, place)),
            false => self.imports.push((name, place)),
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            let is_passed_on = !matches!(item.vis, syn::Visibility::Inherited);
            self.add_tree(&item.tree, &[], is_passed_on);
        }
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        self.inline.push(parts.collect());
        visit::visit_path(self, path);
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all (test"))
    })
}

fn module_of(path: &str) -> Place {
    let inner = path.trim_start_matches("src/").trim_end_matches(".rs");
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    inner
        .split('/')
        .filter(|part| *part != "lib")
        .map(str::to_owned)
        .collect()
}

/// The imports between files, by their paths.
fn edges(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let files: Vec<(&str, Names)> = sources
        .iter()
        .map(|source| (source.path.as_str(), Names::of(source)))
        .collect();
    let by_module: BTreeMap<&[String], &(&str, Names)> = files
        .iter()
        .map(|file| (file.1.module.as_slice(), file))
        .collect();
    let file_of = |place: &[String]| -> Option<String> {
        let mut place = place.to_vec();
        // A re-export leads to another place, which may be re-exported in turn.
        for _ in 0..8 {
            let length = (1..=place.len())
                .rev()
                .find(|at| by_module.contains_key(&place[..*at]))?;
            let (path, names) = by_module[&place[..length]];
            let passed_on = place.get(length).and_then(|item| {
                names
                    .passed_on
                    .iter()
                    .find(|(name, target)| name == item && *target != place)
            });
            match passed_on {
                Some((_, target)) => place = [target.as_slice(), &place[length + 1..]].concat(),
                None => return Some((*path).to_owned()),
            }
        }
        None
    };
    let mut edges = BTreeMap::new();
    for (path, names) in &files {
        let imported = names.imports.iter().map(|(_, place)| place.clone());
        let inline = names
            .inline
            .iter()
            .filter_map(|place| names.absolute(place));
        let mut targets: BTreeSet<String> = imported
            .chain(inline)
            .filter_map(|place| file_of(&place))
            .collect();
        targets.remove(*path);
        // A module that is imported to name its items is not read itself.
        targets.retain(|target| !target.ends_with("/mod.rs") || !path.starts_with(folder(target)));
        edges.insert((*path).to_owned(), targets);
    }
    edges
}

fn folder(path: &str) -> &str {
    path.trim_end_matches("mod.rs")
}

/// The files that lead back to themselves, each with those of its imports that do too.
fn circles(mut edges: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let before: usize = edges.values().map(BTreeSet::len).sum();
        let leads_on: BTreeSet<String> = edges
            .iter()
            .filter(|(_, to)| !to.is_empty())
            .map(|(path, _)| path.clone())
            .collect();
        let is_imported: BTreeSet<String> = edges.values().flatten().cloned().collect();
        edges.retain(|path, _| leads_on.contains(path) && is_imported.contains(path));
        for targets in edges.values_mut() {
            targets.retain(|target| leads_on.contains(target));
        }
        if edges.values().map(BTreeSet::len).sum::<usize>() == before {
            break;
        }
    }
    let line = |(path, targets): (String, BTreeSet<String>)| {
        let targets: Vec<String> = targets.into_iter().collect();
        format!("{path} leads back to itself by {}", targets.join(", "))
    };
    edges.into_iter().map(line).collect()
}

#[test]
fn no_file_leads_back_to_itself() {
    let product: Vec<Source> = product()
        .into_iter()
        .filter(|source| source.path != "src/main.rs")
        .collect();
    let edges = edges(&product);
    let imports: usize = edges.values().map(BTreeSet::len).sum();
    assert!(imports > 1_000, "only {imports} imports were found");
    expect_none(&circles(edges));
}

#[test]
fn a_circle_is_found_through_a_module_and_by_its_name() {
    let file = |path: &str, text: &str| Source {
        path: path.into(),
        text: text.into(),
    };
    let sources = [
        file("src/a/mod.rs", "mod one; pub use one::One;"),
        file("src/a/one.rs", "use crate::b; pub struct One; fn f() { b::two() }"),
        file("src/b.rs", "use crate::a::One; pub fn two() {} struct Holds(One);"),
        file("src/c.rs", "use crate::b::two;\n#[cfg(test)]\nmod tests { use crate::d::D; }"),
        file("src/d.rs", "use crate::c;"),
    ];
    let found = circles(edges(&sources));
    let expected = [
        "src/a/one.rs leads back to itself by src/b.rs",
        "src/b.rs leads back to itself by src/a/one.rs",
    ];
    assert_eq!(found, expected);
}
