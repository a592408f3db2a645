//! The strict walk over an object: what an API server with `fieldValidation=Strict` would refuse.
//!
//! In: the structural schema of a kind and a value. Out: every violation with the path of its field. The schema's CEL rules
//! run too, and unlike in an API server also when types are wrong: what they can say is said at once. Values are shown only
//! where they cannot be secret: numbers, words of an enumeration, durations.

use fencepost_crds::Duration;
use kube_cel::{CompiledSchema, ErrorKind, Validator, compile_schema};
use serde_json::{Map, Value, json};

use super::{field::FieldPath, kind::Kind};

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub field: FieldPath,
    pub message: String,
    pub fix: String,
}

impl Violation {
    pub fn new(field: FieldPath, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            field,
            message: message.into(),
            fix: fix.into(),
        }
    }
}

/// The schema of a kind, its rules compiled.
pub struct KindSchema {
    schema: Value,
    rules: CompiledSchema,
}

impl KindSchema {
    pub fn of(kind: Kind) -> Self {
        let mut schema = match kind {
            Kind::Secret => secret_schema(),
            Kind::ReferenceGrant => reference_grant_schema(),
            _ => crd_schema(kind),
        };
        let compiled = compile_schema(&schema);
        if let Some(required) = schema
            .as_object_mut()
            .map(|root| root.entry("required").or_insert_with(|| json!([])))
            && let Some(required) = required.as_array_mut()
            && !required.contains(&json!("metadata"))
        {
            required.push(json!("metadata"));
        }
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
            properties.insert("kind".to_owned(), json!({"type": "string"}));
            properties.insert("metadata".to_owned(), metadata_schema());
            // A status is what Fencepost writes: it is accepted with exported objects, and not read.
            properties.insert(
                "status".to_owned(),
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            );
        }
        Self {
            schema,
            rules: compiled,
        }
    }

    /// Everything that is wrong with `object`.
    pub fn violations(&self, object: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        walk(&self.schema, object, &FieldPath::default(), &mut found);
        let Err(errors) = Validator::new().validate_compiled(&self.rules, object, None) else {
            return found;
        };
        let mistyped = found.len();
        for error in errors.into_vec() {
            let field = FieldPath::parse(&error.field_path);
            // A rule over a value of the wrong type may fail to run, or say again what is reported already.
            let trusts_the_types = mistyped == 0 || error.kind == ErrorKind::ValidationFailure;
            let is_known = found[..mistyped]
                .iter()
                .any(|known| field.steps().starts_with(known.field.steps()));
            if trusts_the_types && !is_known {
                let (message, fix) = error
                    .message
                    .split_once("; ")
                    .unwrap_or((&error.message, ""));
                found.push(Violation::new(field, message, fix));
            }
        }
        found
    }
}

fn crd_schema(kind: Kind) -> Value {
    fencepost_crds::crds()
        .into_iter()
        .find(|crd| crd.pointer("/spec/names/kind").and_then(Value::as_str) == Some(kind.as_str()))
        .and_then(|mut crd| {
            crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema")
                .map(Value::take)
        })
        .unwrap_or_default()
}

fn walk(schema: &Value, value: &Value, path: &FieldPath, found: &mut Vec<Violation>) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true && schema["properties"].is_null() {
        return;
    }
    match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(map)) => object(schema, map, path, found),
        (Some("array"), Value::Array(items)) => array(schema, items, path, found),
        (Some("string"), Value::String(text)) => string(schema, text, path, found),
        (Some("integer"), Value::Number(number)) if number.is_i64() || number.is_u64() => {
            range(schema, value, path, found);
        }
        (Some("number"), Value::Number(_)) => range(schema, value, path, found),
        (Some("boolean"), Value::Bool(_)) | (None, _) => {}
        (Some(wanted), _) => found.push(wrong_type(wanted, schema, value, path)),
    }
}

fn object(schema: &Value, map: &Map<String, Value>, path: &FieldPath, found: &mut Vec<Violation>) {
    let properties = schema["properties"].as_object();
    for (key, value) in map {
        if let Some(field) = properties.and_then(|properties| properties.get(key)) {
            walk(field, value, &path.key(key), found);
        } else if schema["additionalProperties"].is_object() {
            walk(
                &schema["additionalProperties"],
                value,
                &path.key(key),
                found,
            );
        } else if schema["x-kubernetes-preserve-unknown-fields"] != true {
            let known: Vec<&str> = properties
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str())
                .collect();
            found.push(Violation::new(
                path.key(key),
                "there is no such field",
                suggestion(key, &known),
            ));
        }
    }
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !map.contains_key(name) {
            let what =
                properties.map_or(&Value::Null, |properties| &properties[name])["description"]
                    .as_str();
            let fix = what.map_or_else(
                || format!("add {name}"),
                |what| format!("add {name}: {}", first_sentence(what)),
            );
            found.push(Violation::new(
                path.key(name),
                "this field is required and missing",
                fix,
            ));
        }
    }
    let count = map.len() as u64;
    bound(
        schema,
        "minProperties",
        |least| count < least,
        path,
        found,
        |n| format!("give at least {n} entries"),
    );
    bound(
        schema,
        "maxProperties",
        |most| count > most,
        path,
        found,
        |n| format!("give at most {n} entries"),
    );
}

fn array(schema: &Value, items: &[Value], path: &FieldPath, found: &mut Vec<Violation>) {
    for (index, item) in items.iter().enumerate() {
        walk(&schema["items"], item, &path.index(index), found);
    }
    let count = items.len() as u64;
    bound(
        schema,
        "minItems",
        |least| count < least,
        path,
        found,
        |n| format!("give at least {n}, or leave the field out"),
    );
    bound(
        schema,
        "maxItems",
        |most| count > most,
        path,
        found,
        |n| format!("give at most {n}"),
    );
    if schema["x-kubernetes-list-type"] == "set" {
        let mut seen = std::collections::HashMap::new();
        for (index, text) in items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| Some((index, item.as_str()?)))
        {
            if let Some(first) = seen.insert(text, index) {
                let message = format!("it is given twice, first as {}", path.index(first));
                found.push(Violation::new(
                    path.index(index),
                    message,
                    "remove one of the two",
                ));
            }
        }
    }
}

fn string(schema: &Value, text: &str, path: &FieldPath, found: &mut Vec<Violation>) {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        if !words.contains(&text) {
            found.push(Violation::new(
                path.clone(),
                format!("`{}` is not one of its values", cut(text)),
                suggestion(text, &words),
            ));
        }
    }
    if schema["format"] == "duration" {
        if let Err(error) = text.parse::<Duration>() {
            let error = error.to_string();
            let (message, fix) = error.split_once("; ").unwrap_or((&error, ""));
            found.push(Violation::new(path.clone(), message, fix));
        }
        return;
    }
    let length = text.chars().count() as u64;
    bound(
        schema,
        "minLength",
        |least| length < least,
        path,
        found,
        |n| format!("write at least {n} characters"),
    );
    bound(
        schema,
        "maxLength",
        |most| length > most,
        path,
        found,
        |n| format!("write at most {n} characters"),
    );
}

/// Reports a bound of the schema that `broken` says is not kept.
fn bound(
    schema: &Value,
    keyword: &str,
    broken: impl Fn(u64) -> bool,
    path: &FieldPath,
    found: &mut Vec<Violation>,
    fix: impl Fn(u64) -> String,
) {
    if let Some(limit) = schema[keyword].as_u64().filter(|limit| broken(*limit)) {
        let message = if keyword.starts_with("min") {
            "there is too little of it"
        } else {
            "there is too much of it"
        };
        found.push(Violation::new(path.clone(), message, fix(limit)));
    }
}

fn range(schema: &Value, value: &Value, path: &FieldPath, found: &mut Vec<Violation>) {
    let (least, most) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
    let Some(number) = value.as_f64() else { return };
    if least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most) {
        let fix = match (least, most) {
            (Some(least), Some(most)) => format!("write a number from {least} to {most}"),
            (Some(least), None) => format!("write a number from {least}"),
            (None, Some(most)) => format!("write a number up to {most}"),
            (None, None) => String::new(),
        };
        found.push(Violation::new(
            path.clone(),
            format!("{value} is out of range"),
            fix,
        ));
    }
}

fn wrong_type(wanted: &str, schema: &Value, value: &Value, path: &FieldPath) -> Violation {
    let given = match value {
        Value::Null => "empty".to_owned(),
        Value::Bool(value) => format!("{value}, not quoted"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    };
    let (wanted, fix) = match (wanted, value) {
        ("string", Value::Number(number)) if schema["format"] == "duration" => {
            ("a duration", format!("write a unit too, as in {number}s"))
        }
        ("string", _) if schema["format"] == "duration" => {
            ("a duration", "write it as 60s, 5m or 1h30m".to_owned())
        }
        ("string", Value::Number(_) | Value::Bool(_)) => ("text", "put it in quotes".to_owned()),
        ("string", _) => ("text", "write text".to_owned()),
        ("integer", _) => ("a whole number", "write digits without quotes".to_owned()),
        ("number", _) => ("a number", "write a number without quotes".to_owned()),
        ("boolean", _) => (
            "true or false",
            "write true or false without quotes".to_owned(),
        ),
        ("array", _) => (
            "a list",
            "write each entry on a line of its own, begun with a dash".to_owned(),
        ),
        _ => (
            "a map",
            "write its fields below it, each as name: value".to_owned(),
        ),
    };
    let fix = if value.is_null() {
        format!("{fix}, or remove the field")
    } else {
        fix
    };
    Violation::new(
        path.clone(),
        format!("it is {given} where {wanted} belongs"),
        fix,
    )
}

/// The nearest known word, and all of them.
fn suggestion(word: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        // Two slips of the finger; more is another word.
        .filter(|(distance, _)| *distance <= 2)
        .min();
    match nearest {
        Some((_, nearest)) => format!("did you mean {nearest}? Known here: {}", known.join(", ")),
        None if known.is_empty() => "remove it".to_owned(),
        None => format!("use one of: {}", known.join(", ")),
    }
}

fn first_sentence(text: &str) -> &str {
    text.find(['.', ';', '\n']).map_or(text, |end| &text[..end])
}

/// A mistaken word is short; a pasted text is cut.
fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

fn metadata_schema() -> Value {
    let text_map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let ignored = json!({"x-kubernetes-preserve-unknown-fields": true});
    json!({
        "type": "object",
        "description": "name, and namespace where it is not default",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": "the name of the object"},
            "namespace": {"type": "string"},
            "uid": {"type": "string", "minLength": 1, "maxLength": 128},
            "labels": text_map,
            "annotations": text_map,
            "resourceVersion": ignored,
            "generation": ignored,
            "creationTimestamp": ignored,
            "deletionTimestamp": ignored,
            "deletionGracePeriodSeconds": ignored,
            "finalizers": ignored,
            "managedFields": ignored,
            "ownerReferences": ignored,
            "selfLink": ignored
        }
    })
}

fn secret_schema() -> Value {
    let text_map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "immutable": {"type": "boolean"},
            "data": text_map,
            "stringData": text_map
        }
    })
}

fn reference_grant_schema() -> Value {
    let text = json!({"type": "string", "maxLength": 253});
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "description": "which references are allowed",
                "required": ["from", "to"],
                "properties": {
                    "from": {
                        "type": "array", "minItems": 1, "maxItems": 16,
                        "description": "the objects that may refer to this namespace",
                        "items": {
                            "type": "object",
                            "required": ["group", "kind", "namespace"],
                            "properties": {"group": text, "kind": text, "namespace": text}
                        }
                    },
                    "to": {
                        "type": "array", "minItems": 1, "maxItems": 16,
                        "description": "the objects of this namespace that may be referred to",
                        "items": {
                            "type": "object",
                            "required": ["group", "kind"],
                            "properties": {"group": text, "kind": text, "name": text}
                        }
                    }
                }
            }
        }
    })
}
