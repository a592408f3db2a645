//! Paths to objects and findings: the one entrance of this module.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    document::{self, Document},
    field::FieldPath,
    files,
    finding::Finding,
    kind::ObjectId,
    object::{ObjectSet, Origin},
    read::{self, Schemas, Unusable},
    schema::Violation,
    uid::UidRegistry,
};

/// What a load found.
#[derive(Debug, Default)]
pub struct LoadOutcome {
    /// Every object that is right, also those of a file that has errors elsewhere.
    pub objects: ObjectSet,
    /// Every error of every file.
    pub errors: Vec<Finding>,
    /// Files and folders of which something could not be read as an object.
    pub broken_files: BTreeSet<PathBuf>,
    /// Objects that are there and have errors. Who refers to one of them refers to something.
    pub broken_objects: BTreeSet<ObjectId>,
    /// Something could not even be named: an unreadable file, or a document that does not parse.
    pub unnamed: bool,
}

/// Reads everything below `paths`. Deterministic but for the uids of objects that were never seen before.
pub fn load(paths: &[PathBuf], uids: &mut UidRegistry) -> LoadOutcome {
    let schemas = Schemas::compile();
    let mut outcome = LoadOutcome::default();
    let mut places = BTreeMap::new();
    for (file, text) in files::read_all(paths) {
        match text {
            Ok(text) => {
                for document in document::split(&text) {
                    read_document(&file, &document, &schemas, uids, &mut places, &mut outcome);
                }
            }
            Err(error) => {
                outcome.unnamed = true;
                outcome.errors.push(Finding {
                    file: file.clone(),
                    line: None,
                    document: 0,
                    object: None,
                    field: None,
                    message: error.to_string(),
                    fix: error.fix().to_owned(),
                });
                outcome.broken_files.insert(file);
            }
        }
    }
    outcome.errors.sort();
    let mut present = outcome.objects.ids();
    present.extend(outcome.broken_objects.iter().cloned());
    uids.forget_all_but(&present, |file| outcome.is_broken(file));
    outcome
}

fn read_document(
    file: &Path,
    document: &Document,
    schemas: &Schemas,
    uids: &mut UidRegistry,
    places: &mut BTreeMap<ObjectId, (PathBuf, usize)>,
    outcome: &mut LoadOutcome,
) {
    let value = match document::parse(document) {
        Ok(value) => value,
        Err(error) => {
            outcome.unnamed = true;
            outcome.broken_files.insert(file.to_owned());
            outcome.errors.push(Finding {
                file: file.to_owned(),
                line: error.line,
                document: document.number,
                object: None,
                field: None,
                message: error.message,
                fix: error.fix.to_owned(),
            });
            return;
        }
    };
    for (base, value) in read::objects_in(value) {
        let origin = Origin {
            file: file.to_owned(),
            document: document.number,
            first_line: document.first_line,
            base,
            text: document.text.clone(),
        };
        let checked = match read::check(value, schemas) {
            Ok(checked) => checked,
            Err(unusable) => {
                outcome.refuse(&origin, unusable);
                continue;
            }
        };
        let id = checked.id.clone();
        if let Some((first, line)) = places.get(&id) {
            let message = format!("this object is already given in {}:{line}", first.display());
            let name = FieldPath::default().key("metadata").key("name");
            let violation = Violation::new(
                name,
                message,
                "remove one of the two, or give it another name or namespace",
            );
            outcome.errors.push(finding(&origin, Some(&id), violation));
            continue;
        }
        places.insert(id.clone(), (file.to_owned(), origin.line()));
        let uid = uids.assign(&id, checked.uid.as_deref(), file);
        if let Err(violation) = checked.into_set(uid, origin.clone(), &mut outcome.objects) {
            outcome.refuse(
                &origin,
                Unusable {
                    id: Some(id),
                    violations: vec![violation],
                },
            );
        }
    }
}

impl LoadOutcome {
    /// The objects, and of each file that could not be read in full also those that `previous` had and that are missing now: a
    /// half-edited file deletes nothing.
    #[must_use]
    pub fn keeping_from_broken_files(&self, previous: &ObjectSet) -> ObjectSet {
        let mut objects = self.objects.clone();
        objects.add_missing(previous, |origin| self.is_broken(&origin.file));
        objects
    }

    /// The file, or a folder above it, could not be read in full.
    pub fn is_broken(&self, file: &Path) -> bool {
        self.broken_files
            .iter()
            .any(|broken| file.starts_with(broken))
    }

    fn refuse(&mut self, origin: &Origin, unusable: Unusable) {
        self.broken_files.insert(origin.file.clone());
        self.errors.extend(
            unusable
                .violations
                .into_iter()
                .map(|violation| finding(origin, unusable.id.as_ref(), violation)),
        );
        match unusable.id {
            Some(id) => drop(self.broken_objects.insert(id)),
            None => self.unnamed = true,
        }
    }
}

fn finding(origin: &Origin, id: Option<&ObjectId>, violation: Violation) -> Finding {
    Finding {
        file: origin.file.clone(),
        line: Some(origin.line_of(&violation.field)),
        document: origin.document,
        object: id.map(ToString::to_string),
        field: Some(violation.field.to_string()).filter(|field| !field.is_empty()),
        message: violation.message,
        fix: violation.fix,
    }
}
