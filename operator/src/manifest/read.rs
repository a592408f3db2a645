//! One value of a file as one typed object.
//!
//! In: a value and its place. Out: the object, or everything that is wrong with it.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    field::FieldPath,
    kind::{Kind, ObjectId},
    object::{Manifest, ObjectName, ObjectSet, Origin},
    schema::{KindSchema, Violation},
    secret::{Secret, SecretData},
    values,
};

/// Annotations that mean something here.
const OWN_ANNOTATIONS: &str = "fencepost.dev/";

/// The schemas of all kinds, compiled once for a load.
pub struct Schemas(BTreeMap<Kind, KindSchema>);

impl Schemas {
    pub fn compile() -> Self {
        Self(
            Kind::ALL
                .into_iter()
                .map(|kind| (kind, KindSchema::of(kind)))
                .collect(),
        )
    }
}

/// A value that is no usable object.
#[derive(Debug)]
pub struct Unusable {
    /// Its identity, where kind and name could be read.
    pub id: Option<ObjectId>,
    pub violations: Vec<Violation>,
}

impl Unusable {
    fn unknown(field: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            id: None,
            violations: vec![Violation::new(
                FieldPath::default().key(field),
                message,
                fix,
            )],
        }
    }
}

/// A value whose schema, rules and values hold.
///
/// No `Debug`: it may be a Secret's.
pub struct Checked {
    pub id: ObjectId,
    /// The uid written in the manifest.
    pub uid: Option<String>,
    value: Value,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// The items of a `List`, or the value itself, each with its path in the document.
pub fn objects_in(value: Value) -> Vec<(FieldPath, Value)> {
    let is_list = value["kind"] == "List"
        || (value["items"].is_array()
            && value["kind"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("List")));
    match value {
        Value::Object(mut map) if is_list => match map.remove("items") {
            Some(Value::Array(items)) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| (FieldPath::default().key("items").index(index), item))
                .collect(),
            _ => Vec::new(),
        },
        other => vec![(FieldPath::default(), other)],
    }
}

/// Checks one value against everything that can be said of it alone.
pub fn check(value: Value, schemas: &Schemas) -> Result<Checked, Unusable> {
    let kind = kind_of(&value)?;
    let metadata = &value["metadata"];
    let name = metadata["name"].as_str();
    let namespace = metadata["namespace"].as_str().unwrap_or("default");
    let id = name.map(|name| ObjectId::new(kind, namespace, name));
    let mut violations = schemas
        .0
        .get(&kind)
        .map(|schema| schema.violations(&value))
        .unwrap_or_default();
    for (field, text, longest) in [("name", name, 253), ("namespace", Some(namespace), 63)] {
        if let Some(fault) = text.and_then(|text| not_dns_1123(text, longest)) {
            violations.push(Violation::new(
                FieldPath::default().key("metadata").key(field),
                format!("{fault} is not allowed in a {field}"),
                "use lower-case letters, digits and hyphens, with a letter or digit first and last",
            ));
        }
    }
    for violation in values::violations(kind, &value) {
        if violations
            .iter()
            .all(|known| known.field != violation.field)
        {
            violations.push(violation);
        }
    }
    match id {
        Some(id) if violations.is_empty() => {
            let uid = metadata["uid"].as_str().map(ToOwned::to_owned);
            Ok(Checked { id, uid, value })
        }
        id => Err(Unusable { id, violations }),
    }
}

fn kind_of(value: &Value) -> Result<Kind, Unusable> {
    let read = Kind::ALL.map(Kind::as_str).join(", ");
    if !value.is_object() {
        return Err(Unusable::unknown(
            "",
            "this document is no object",
            "write apiVersion, kind, metadata and spec",
        ));
    }
    let (Some(api_version), Some(name)) = (value["apiVersion"].as_str(), value["kind"].as_str())
    else {
        let missing = if value["kind"].is_string() {
            "apiVersion"
        } else {
            "kind"
        };
        return Err(Unusable::unknown(
            missing,
            "this field is required and missing",
            format!("add {missing}; kinds read here: {read}"),
        ));
    };
    let shown = || {
        value["metadata"]["name"]
            .as_str()
            .map(|name| format!(" {name:?}"))
            .unwrap_or_default()
    };
    match name.parse::<Kind>() {
        Ok(kind) if kind.api_version() == api_version => Ok(kind),
        Ok(kind) => Err(Unusable::unknown(
            "apiVersion",
            format!("{kind}{} has the apiVersion {api_version:?}", shown()),
            format!("write apiVersion: {}", kind.api_version()),
        )),
        Err(()) => Err(Unusable::unknown(
            "kind",
            format!(
                "{name}{} ({api_version}) is not a kind that is read here",
                shown()
            ),
            format!("move it out of these paths; kinds read here: {read}"),
        )),
    }
}

/// The part of a name that is not RFC 1123, if there is one.
fn not_dns_1123(text: &str, longest: usize) -> Option<String> {
    let allowed = |c: char| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || (c == '.' && longest > 63)
    };
    if text.is_empty() {
        return Some("an empty text".to_owned());
    }
    if text.len() > longest {
        return Some(format!("more than {longest} characters"));
    }
    if let Some(wrong) = text.chars().find(|c| !allowed(*c)) {
        return Some(format!("the character {wrong:?}"));
    }
    let ends = text
        .split('.')
        .any(|label| label.is_empty() || label.starts_with('-') || label.ends_with('-'));
    ends.then(|| "a hyphen or dot first or last".to_owned())
}

impl Checked {
    /// Puts the object into the set. What fails here passed the schema and is refused by a type all the same.
    pub fn into_set(
        mut self,
        uid: String,
        origin: Origin,
        set: &mut ObjectSet,
    ) -> Result<(), Violation> {
        let mut metadata: Metadata = typed(self.value["metadata"].take(), "metadata")?;
        // Others hold what others wrote: kubectl keeps a copy of the whole object there, also of a Secret.
        metadata
            .annotations
            .retain(|name, _| name.starts_with(OWN_ANNOTATIONS));
        let name = ObjectName::new(&self.id.namespace, &self.id.name);
        let bare = Manifest {
            name: name.clone(),
            uid,
            labels: metadata.labels,
            annotations: metadata.annotations,
            origin,
            spec: (),
        };
        let spec = self.value["spec"].take();
        match self.id.kind {
            Kind::MCPServer => set
                .servers
                .insert(name, bare.with(typed(spec, "spec")?))
                .map(drop),
            Kind::MCPSubject => set
                .subjects
                .insert(name, bare.with(typed(spec, "spec")?))
                .map(drop),
            Kind::WatchedResource => set
                .watches
                .insert(name, bare.with(typed(spec, "spec")?))
                .map(drop),
            Kind::ResourceCatalog => set
                .catalogs
                .insert(name, bare.with(typed(spec, "spec")?))
                .map(drop),
            Kind::DerivedIndex => set
                .indexes
                .insert(name, bare.with(typed(spec, "spec")?))
                .map(drop),
            Kind::ReferenceGrant => set
                .grants
                .insert(name, bare.with(typed(spec, "spec")?))
                .map(drop),
            Kind::Secret => set
                .secrets
                .insert(name, bare.with(secret_data(&self.value)?))
                .map(drop),
        };
        Ok(())
    }
}

impl Manifest<()> {
    fn with<T>(self, spec: T) -> Manifest<T> {
        let Self {
            name,
            uid,
            labels,
            annotations,
            origin,
            spec: (),
        } = self;
        Manifest {
            name,
            uid,
            labels,
            annotations,
            origin,
            spec,
        }
    }
}

fn typed<T: DeserializeOwned>(value: Value, field: &str) -> Result<T, Violation> {
    serde_json::from_value(value)
        .map_err(|error| Violation::new(FieldPath::default().key(field), error.to_string(), ""))
}

fn secret_data(value: &Value) -> Result<SecretData, Violation> {
    let mut keys = BTreeMap::new();
    for (key, text) in value["data"].as_object().into_iter().flatten() {
        // `base64` in a shell folds long lines; the API server takes them too.
        let text: String = text
            .as_str()
            .unwrap_or_default()
            .split_ascii_whitespace()
            .collect();
        let bytes = STANDARD.decode(text).map_err(|_| {
            let field = FieldPath::default().key("data").key(key);
            Violation::new(
                field,
                "it is not base64",
                "encode it with base64, or write the text itself under stringData",
            )
        })?;
        keys.insert(key.clone(), Secret::new(bytes));
    }
    for (key, text) in value["stringData"].as_object().into_iter().flatten() {
        keys.insert(key.clone(), Secret::new(text.as_str().unwrap_or_default()));
    }
    Ok(SecretData(keys))
}
