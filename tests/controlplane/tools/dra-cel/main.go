// Command dra-cel judges devices by selectors as kube-scheduler does.
//
// It reads JSON lines from its standard input, each with an expression and a device, and answers each with a line on
// its standard output. Expressions are compiled as stored ones with every feature on.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	apiservercel "k8s.io/apiserver/pkg/cel"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// Asked is one line of the input. Raw asks for the type and the value of an expression that need not be a selector.
type Asked struct {
	Expr   string        `json:"expr"`
	Device dracel.Device `json:"device"`
	Raw    bool          `json:"raw"`
}

// Told is one line of the output. Kind is "ok", "compile", "runtime" or, for what upstream breaks at, "panic"; for all but
// the first Text is the error's.
type Told struct {
	Kind  string `json:"kind"`
	Type  string `json:"type,omitempty"`
	Value string `json:"value,omitempty"`
	Text  string `json:"text,omitempty"`
	Cost  uint64 `json:"cost"`
}

// watched is a program that keeps the value it came to, whatever its type.
type watched struct {
	cel.Program
	value ref.Val
}

func (w *watched) ContextEval(ctx context.Context, vars any) (ref.Val, *cel.EvalDetails, error) {
	value, details, err := w.Program.ContextEval(ctx, vars)
	w.value = value
	return value, details, err
}

// compile does without the check of the type of the result if any type will do.
func compile(asked Asked) dracel.CompilationResult {
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	options := dracel.Options{DisableCostEstimation: true}
	if !asked.Raw {
		return compiler.CompileCELExpression(asked.Expr, options)
	}
	// What is true of every expression of this environment: its types, and how its devices become values.
	compiled := compiler.CompileCELExpression("true", options)
	failed := func(text string) dracel.CompilationResult {
		return dracel.CompilationResult{Error: &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: text}}
	}
	ast, issues := compiled.Environment.Compile(asked.Expr)
	if issues != nil {
		return failed("compilation failed: " + issues.String())
	}
	program, err := compiled.Environment.Program(ast, cel.CostLimit(1_000_000))
	if err != nil {
		return failed("program instantiation failed: " + err.Error())
	}
	compiled.OutputType, compiled.Program = ast.OutputType(), program
	return compiled
}

func judge(asked Asked) (told Told) {
	defer func() {
		if broken := recover(); broken != nil {
			told = Told{Kind: "panic", Text: fmt.Sprint(broken)}
		}
	}()
	compiled := compile(asked)
	if compiled.Error != nil {
		return Told{Kind: "compile", Text: compiled.Error.Error()}
	}
	program := &watched{Program: compiled.Program}
	compiled.Program = program
	told = Told{Kind: "ok", Type: compiled.OutputType.String()}
	matches, details, err := compiled.DeviceMatches(context.Background(), asked.Device)
	if details != nil && details.ActualCost() != nil {
		told.Cost = *details.ActualCost()
	}
	switch {
	case asked.Raw && program.value != nil && program.value.Type().TypeName() != "error":
		told.Value = show(program.value)
	case err != nil:
		told.Kind, told.Text = "runtime", dracel.EnhanceRuntimeError(err).Error()
	default:
		told.Value = fmt.Sprint(matches)
	}
	return told
}

func run() error {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), bufio.NewWriter(os.Stdout)
	write := json.NewEncoder(out)
	write.SetEscapeHTML(false)
	for {
		var asked Asked
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			return out.Flush()
		} else if err != nil {
			return err
		}
		if err := write.Encode(judge(asked)); err != nil {
			return err
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
