//! Whether kube-proxy or Cilium answers for Services.
//!
//! Two sides must agree: whether a DaemonSet `kube-proxy` runs, and `kube-proxy-replacement` in
//! the ConfigMap `cilium-config`. (Takeover rules, section 2, point 3.)

use std::fmt;

/// Cilium's replacement of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Cilium answers for Services.
    On,
    /// Cilium leaves Services to kube-proxy.
    Off,
}

/// What the cluster's kube-proxy is, both sides being one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeProxy {
    /// kube-proxy runs, Cilium's replacement is off.
    Enabled,
    /// kube-proxy does not run, Cilium's replacement is on.
    Replaced,
}

/// Why the two sides are not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeProxyError {
    /// A mode in which Cilium replaces parts of kube-proxy.
    #[error(
        "kube-proxy-replacement is {mode:?} in the ConfigMap cilium-config: a mode in which \
         Cilium and kube-proxy share the Services, which Cilium has removed; set \
         kubeProxyReplacement to true or false with the tool that installed Cilium"
    )]
    Hybrid {
        /// The mode.
        mode: String,
    },
    /// A mode that no Cilium has.
    #[error("kube-proxy-replacement is {mode:?} in the ConfigMap cilium-config, which is no mode")]
    Unknown {
        /// The text.
        mode: String,
    },
    /// Both answer.
    #[error(
        "a DaemonSet kube-proxy runs and kube-proxy-replacement is on: both answer for Services; \
         remove kube-proxy, or set kubeProxyReplacement to false with the tool that installed \
         Cilium"
    )]
    Both,
    /// Neither answers.
    #[error(
        "no DaemonSet kube-proxy runs and kube-proxy-replacement is off: nothing answers for \
         Services, or something that ichor cannot see; run kube-proxy as a DaemonSet, or set \
         kubeProxyReplacement to true with the tool that installed Cilium"
    )]
    Neither,
}

impl Replacement {
    /// Reads the entry of `cilium-config`. A missing one is off, as the agent takes it.
    ///
    /// # Errors
    /// [`KubeProxyError::Hybrid`], [`KubeProxyError::Unknown`]
    pub fn parse(mode: Option<&str>) -> Result<Self, KubeProxyError> {
        match mode {
            Some("true" | "strict") => Ok(Self::On),
            None | Some("false" | "disabled") => Ok(Self::Off),
            Some(mode @ ("partial" | "probe")) => {
                Err(KubeProxyError::Hybrid { mode: mode.to_owned() })
            }
            Some(mode) => Err(KubeProxyError::Unknown { mode: mode.to_owned() }),
        }
    }

    /// Whether it is on, which is what the chart's value holds.
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

impl KubeProxy {
    /// Puts both sides together.
    ///
    /// # Errors
    /// [`KubeProxyError::Both`], [`KubeProxyError::Neither`]
    pub const fn agree(runs: bool, replacement: Replacement) -> Result<Self, KubeProxyError> {
        match (runs, replacement) {
            (true, Replacement::Off) => Ok(Self::Enabled),
            (false, Replacement::On) => Ok(Self::Replaced),
            (true, Replacement::On) => Err(KubeProxyError::Both),
            (false, Replacement::Off) => Err(KubeProxyError::Neither),
        }
    }
}

impl fmt::Display for KubeProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Enabled => "enabled",
            Self::Replaced => "replaced",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_with_and_without_kube_proxy() {
        let judge = |mode: Option<&str>, runs| {
            Replacement::parse(mode).and_then(|replacement| KubeProxy::agree(runs, replacement))
        };
        for mode in [Some("true"), Some("strict")] {
            assert_eq!(judge(mode, false), Ok(KubeProxy::Replaced));
            assert_eq!(judge(mode, true), Err(KubeProxyError::Both));
        }
        for mode in [None, Some("false"), Some("disabled")] {
            assert_eq!(judge(mode, true), Ok(KubeProxy::Enabled));
            assert_eq!(judge(mode, false), Err(KubeProxyError::Neither));
        }
        for runs in [true, false] {
            for mode in ["partial", "probe"] {
                assert!(matches!(judge(Some(mode), runs), Err(KubeProxyError::Hybrid { .. })));
            }
            for mode in ["", "True", "yes"] {
                assert!(matches!(judge(Some(mode), runs), Err(KubeProxyError::Unknown { .. })));
            }
        }
    }
}
