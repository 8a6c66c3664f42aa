//! `.Capabilities` as templates see it.

use std::any::Any;
use std::rc::Rc;

use gotemplate::value::Kind;
use gotemplate::{CallError, List, Method, Object, Str, Value};

use super::objects::{VERSION_SET, fields_of, text};
use crate::capabilities::{Capabilities, HelmVersion, KubeVersion};

/// `.Capabilities`. Built once per render; its parts are shared by all charts.
pub(crate) struct CapabilitiesObject {
    kube_version: Value,
    api_versions: Value,
    helm_version: Value,
}

/// The field, whose struct Go can address, or a copy of it.
#[derive(Clone)]
struct KubeVersionObject {
    version: KubeVersion,
    is_copy: bool,
}

struct BuildInfoObject(HelmVersion);

impl CapabilitiesObject {
    pub(crate) fn value(capabilities: &Capabilities) -> Value {
        let versions = capabilities.api_versions.iter().map(|v| text(v)).collect::<Vec<_>>();
        Value::Object(Rc::new(Self {
            kube_version: Value::Object(Rc::new(KubeVersionObject {
                version: capabilities.kube_version.clone(),
                is_copy: false,
            })),
            api_versions: Value::List(List::new(&VERSION_SET, versions)),
            helm_version: Value::Object(Rc::new(BuildInfoObject(
                capabilities.helm_version.clone(),
            ))),
        }))
    }
}

static CAPABILITIES_METHODS: [Method; 1] =
    [Method { name: "Copy", params: &[], variadic: false, call: copy_capabilities }];

#[expect(clippy::unnecessary_wraps, reason = "the signature of all methods")]
fn copy_capabilities(capabilities: &Value, _: &[Value]) -> Result<Value, CallError> {
    // Nothing that templates can do changes the object, so a shared copy is a copy.
    Ok(capabilities.clone())
}

impl Object for CapabilitiesObject {
    fn type_name(&self) -> &'static str {
        "*chartutil.Capabilities"
    }

    fn kind(&self) -> Kind {
        Kind::Ptr
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "KubeVersion" => self.kube_version.clone(),
            "APIVersions" => self.api_versions.clone(),
            "HelmVersion" => self.helm_version.clone(),
            _ => return None,
        })
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        fields_of(self, &["KubeVersion", "APIVersions", "HelmVersion"])
    }

    fn methods(&self) -> &'static [Method] {
        &CAPABILITIES_METHODS
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        Some(self.fields().into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

// Both methods belong to the pointer type in Go; templates reach them because the field of a
// pointed-to struct is addressable, which a copy is not.
static KUBE_VERSION_METHODS: [Method; 2] = [
    Method { name: "GitVersion", params: &[], variadic: false, call: git_version },
    Method { name: "String", params: &[], variadic: false, call: git_version },
];

fn git_version(version: &Value, _: &[Value]) -> Result<Value, CallError> {
    match version {
        Value::Object(object) => {
            object.field("Version").ok_or_else(|| CallError::new("no such field"))
        }
        _ => Err(CallError::new("receiver is not a Kubernetes version")),
    }
}

impl Object for KubeVersionObject {
    fn type_name(&self) -> &'static str {
        "chartutil.KubeVersion"
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "Version" => text(&self.version.version),
            "Major" => text(&self.version.major),
            "Minor" => text(&self.version.minor),
            _ => return None,
        })
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        fields_of(self, &["Version", "Major", "Minor"])
    }

    fn methods(&self) -> &'static [Method] {
        if self.is_copy { &[] } else { &KUBE_VERSION_METHODS }
    }

    fn addressed_string(&self) -> Option<Str> {
        (!self.is_copy).then(|| self.version.version.as_str().into())
    }

    fn copied(&self) -> Option<Value> {
        (!self.is_copy).then(|| Value::Object(Rc::new(Self { is_copy: true, ..self.clone() })))
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        Some(self.fields().into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Object for BuildInfoObject {
    fn type_name(&self) -> &'static str {
        "version.BuildInfo"
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "Version" => text(&self.0.version),
            "GitCommit" => text(&self.0.git_commit),
            "GitTreeState" => text(&self.0.git_tree_state),
            "GoVersion" => text(&self.0.go_version),
            _ => return None,
        })
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        fields_of(self, &["Version", "GitCommit", "GitTreeState", "GoVersion"])
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let names = ["version", "git_commit", "git_tree_state", "go_version"];
        let fields = names.into_iter().zip(self.fields());
        let present = fields.filter(|(_, (_, value))| value.is_true());
        Some(present.map(|(name, (_, value))| (name.into(), value)).collect())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
