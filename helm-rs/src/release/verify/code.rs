//! What an audit can find: codes that do not change, what they mean and what to do.

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Helm will fail or do the wrong thing.
    Error,
    /// Worth a look.
    Warning,
}

impl Severity {
    /// As it is printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

macro_rules! codes {
    ($($name:ident $text:literal $severity:ident $meaning:literal $advice:literal,)*) => {
        /// What a finding is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// What it means, for every finding of this code.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }

            /// What to do about it.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)* }
            }
        }
    };
}

codes! {
    Undecodable "undecodable" Error
        "A record, or an object of the input that should be one, does not decode."
        "restore the object from a backup, or delete it if other revisions are whole",
    NoRecord "no-record" Warning
        "There is no release record where records were looked for."
        "check file, namespace and driver; a dump needs kubectl get secrets -o yaml, not a table",
    RecordTwice "record-twice" Error
        "The input has two records of the same revision, and they differ."
        "read one cluster's or one time's records at once: it cannot be told which of the two counts",
    LabelName "label-name" Error
        "The label name is not the release's name."
        "set the label to the record's name: Helm finds records by it",
    LabelVersion "label-version" Error
        "The label version is not the revision."
        "set the label to the record's revision",
    LabelStatus "label-status" Error
        "The label status is not the record's status."
        "set the label to the record's status: Helm finds the deployed revision by it",
    LabelOwner "label-owner" Error
        "The label owner is not helm."
        "set the label owner to helm: without it Helm does not see the record",
    ObjectName "object-name" Error
        "The object is not named after release and revision."
        "create the object under the right name and delete this one",
    ObjectNamespace "object-namespace" Error
        "The object is in another namespace than the one that the record names."
        "move the record (ichor release export --into-namespace): Helm looks for it in one namespace and acts in the other",
    SeveralDeployed "several-deployed" Warning
        "More than one revision is deployed."
        "mark all but the last one superseded, in body and label",
    NoneDeployed "none-deployed" Warning
        "No revision is deployed, and none is on its way."
        "roll back to a good revision, or uninstall the release",
    StuckPending "stuck-pending" Error
        "An operation began and did not end."
        "check that no Helm runs, then roll back to the last good revision",
    RevisionGap "revision-gap" Warning
        "Revisions are missing between others."
        "somebody deleted records; look for them in a backup if they matter",
    SizeOver "size-over" Error
        "The record is over what an object may hold."
        "make the chart smaller: files that templates do not read, CRDs",
    SizeNear "size-near" Warning
        "The record is near what an object may hold."
        "make the chart smaller before the next revision does not fit",
    SizeForecast "size-forecast" Warning
        "At the rate at which the last revision grew, the next one does not fit into an object."
        "find out what grows (ichor release diff) and make the chart smaller",
    OtherNamespace "other-namespace" Warning
        "An object of the manifest is in another namespace than the release."
        "check that this is meant: listing the release's namespace does not show it",
    DuplicateObject "duplicate-object" Error
        "The manifest has an object twice."
        "remove one of the two from the chart: the last one wins",
    ClaimedTwice "claimed-twice" Error
        "Two releases of the input have the same object in their manifests."
        "decide which release owns it and remove it from the other",
    RemovedApi "removed-api" Error
        "The manifest uses an API that the given Kubernetes no longer has."
        "upgrade the chart before the cluster; afterwards Helm cannot read this manifest",
    DeprecatedApi "deprecated-api" Warning
        "The manifest uses an API that the given Kubernetes has, and a later one will not have."
        "upgrade the chart before the cluster that no longer has it",
    UnreadableHooks "unreadable-hooks" Error
        "The hooks do not read."
        "restore the record from a backup: Helm cannot run or skip these hooks",
    UnreadableManifest "unreadable-manifest" Error
        "The manifest does not read."
        "restore the record from a backup: Helm cannot compare with this manifest",
    RerenderEdited "rerender-edited" Warning
        "The chart does not render to the stored manifest, and the difference looks like an edited record."
        "compare with ichor release diff; another helm upgrade writes a manifest that fits the chart",
    RerenderPostRendered "rerender-post-rendered" Warning
        "The chart does not render to the stored manifest, and the difference looks like a post-renderer's work."
        "upgrade with the same --post-renderer, or its changes are lost",
    RerenderCapabilities "rerender-capabilities" Warning
        "The chart renders to the stored manifest for another Kubernetes version or other API versions."
        "pass them to the next render off the cluster (--kube-version, --api-versions)",
    RerenderLookup "rerender-lookup" Warning
        "The chart does not render to the stored manifest, and its templates read the cluster."
        "render with the cluster at hand: what templates looked up is not in the record",
    RerenderImpossible "rerender-impossible" Warning
        "The record's chart does not render."
        "render the chart from its source: a record may lack what it needs",
    MissingObject "missing-object" Error
        "An object of the manifest is not on the cluster."
        "helm upgrade or rollback creates it again; find out who deleted it",
    ForeignOwner "foreign-owner" Error
        "An object of the manifest belongs to another release, as its annotations on the cluster say."
        "decide which release owns it: the next upgrade of either fails or takes it",
}
