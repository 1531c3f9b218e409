//go:build never

// Package suite pins what the suite is built of: `go test -c` needs it in this module.
package suite

import _ "k8s.io/kubernetes/test/e2e"
