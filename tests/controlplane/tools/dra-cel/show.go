package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// show writes a value so that values of different types or contents never look alike.
func show(value ref.Val) string {
	switch v := value.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return strconv.FormatBool(bool(v))
	case types.Int:
		return strconv.FormatInt(int64(v), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(v), 10) + "u"
	case types.Double:
		return fmt.Sprintf("double(%v)", float64(v))
	case types.String:
		return quote(string(v))
	case types.Bytes:
		return "b" + hex.EncodeToString(v)
	case *types.Optional:
		if !v.HasValue() {
			return "optional.none()"
		}
		return "optional(" + show(v.GetValue()) + ")"
	case types.Duration:
		return "duration(" + strconv.FormatInt(int64(v.Duration), 10) + ")"
	case types.Timestamp:
		return fmt.Sprintf("timestamp(%d.%09d)", v.Unix(), v.Nanosecond())
	case *apiservercel.Quantity:
		return fmt.Sprintf("quantity(%s)", amount(v.AsApproximateFloat64()))
	case apiservercel.Quantity:
		return fmt.Sprintf("quantity(%s)", amount(v.AsApproximateFloat64()))
	case apiservercel.Semver:
		return "semver(" + v.String() + ")"
	case apiservercel.IP:
		return "ip(" + v.String() + ")"
	case apiservercel.CIDR:
		return "cidr(" + v.String() + ")"
	case apiservercel.URL:
		return "url(" + v.String() + ")"
	case apiservercel.Format:
		return "format(" + v.Name + ")"
	case ref.Type:
		return "type(" + v.TypeName() + ")"
	case traits.Mapper:
		var shown []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			shown = append(shown, show(key)+": "+show(v.Get(key)))
		}
		sort.Strings(shown)
		return "{" + strings.Join(shown, ", ") + "}"
	case traits.Lister:
		var shown []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			shown = append(shown, show(it.Next()))
		}
		return "[" + strings.Join(shown, ", ") + "]"
	}
	return value.Type().TypeName()
}

// amount writes about as much as a quantity is; what it is exactly tests learn by comparing quantities.
func amount(about float64) string {
	return fmt.Sprintf("%.6g", about)
}

func quote(text string) string {
	var out strings.Builder
	write := json.NewEncoder(&out)
	write.SetEscapeHTML(false)
	if err := write.Encode(text); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}
