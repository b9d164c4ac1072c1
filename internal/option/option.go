// Package option describes tunables as data: one table per kind of thing
// gives the name, range, default, unit and meaning of each option, and the
// field it fills. The configuration decoder, the printed reference, the
// effective configuration and live changes are all driven by the same table,
// so an option is written down once.
package option

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Spec is one option of a struct T. Exactly one of Int, Str, Bool and Dur is
// set and returns the field.
type Spec[T any] struct {
	Name string
	Help string // one line, says what the option trades
	Unit string // "frames", "descriptors", "bytes", …; empty for a bare number

	Int  func(*T) *int
	Str  func(*T) *string
	Bool func(*T) *bool
	Dur  func(*T) *time.Duration

	Min, Max int      // for Int; for Dur in microseconds
	Multiple int      // for Int: the value must be a multiple; 0 means any
	Values   []string // for Str: the allowed words; nil means any text

	DefInt  int
	DefStr  string
	DefBool bool
	DefDur  time.Duration

	Live bool // may be changed on a running router
}

// Table is the list of options of T, in the order in which they are printed.
type Table[T any] []Spec[T]

// Defaults is a T with every option at its default.
func (t Table[T]) Defaults() T {
	var v T
	for i := range t {
		t[i].setDefault(&v)
	}
	return v
}

func (s *Spec[T]) setDefault(v *T) {
	switch {
	case s.Int != nil:
		*s.Int(v) = s.DefInt
	case s.Str != nil:
		*s.Str(v) = s.DefStr
	case s.Bool != nil:
		*s.Bool(v) = s.DefBool
	case s.Dur != nil:
		*s.Dur(v) = s.DefDur
	}
}

// Find returns the option of that name, or nil.
func (t Table[T]) Find(name string) *Spec[T] {
	for i := range t {
		if t[i].Name == name {
			return &t[i]
		}
	}
	return nil
}

// Names lists the option names in table order.
func (t Table[T]) Names() []string {
	n := make([]string, len(t))
	for i := range t {
		n[i] = t[i].Name
	}
	return n
}

// Check reports every option of v that is outside its range.
func (t Table[T]) Check(v *T) []error {
	var errs []error
	for i := range t {
		if err := t[i].Check(v); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Check reports whether the option's field in v is in range; the error names
// the option, what it holds and what was expected.
func (s *Spec[T]) Check(v *T) error {
	bad := func(got any) error {
		return fmt.Errorf("%s is %v, expected %s", s.Name, got, s.Expect())
	}
	switch {
	case s.Int != nil:
		n := *s.Int(v)
		if n < s.Min || n > s.Max || (s.Multiple > 1 && n%s.Multiple != 0) {
			return bad(n)
		}
	case s.Dur != nil:
		d := *s.Dur(v)
		if us := d.Microseconds(); us < int64(s.Min) || us > int64(s.Max) {
			return bad(d)
		}
	case s.Str != nil:
		w := *s.Str(v)
		if s.Values == nil {
			return nil
		}
		for _, ok := range s.Values {
			if w == ok {
				return nil
			}
		}
		return bad(strconv.Quote(w))
	}
	return nil
}

// Set parses text into the option's field of v. On an error v is unchanged.
func (s *Spec[T]) Set(v *T, text string) error {
	old := *v
	bad := func() error {
		*v = old
		return fmt.Errorf("%s is %q, expected %s", s.Name, text, s.Expect())
	}
	switch {
	case s.Int != nil:
		n, err := ParseInt(text)
		if err != nil {
			return bad()
		}
		*s.Int(v) = n
	case s.Str != nil:
		*s.Str(v) = text
	case s.Bool != nil:
		switch text {
		case "true":
			*s.Bool(v) = true
		case "false":
			*s.Bool(v) = false
		default:
			return bad()
		}
	case s.Dur != nil:
		d, err := time.ParseDuration(text)
		if err != nil {
			return bad()
		}
		*s.Dur(v) = d
	}
	if err := s.Check(v); err != nil {
		return bad()
	}
	return nil
}

// Text is the option's value in v as it is written in a configuration.
func (s *Spec[T]) Text(v *T) string {
	switch {
	case s.Int != nil:
		return strconv.Itoa(*s.Int(v))
	case s.Str != nil:
		return *s.Str(v)
	case s.Bool != nil:
		return strconv.FormatBool(*s.Bool(v))
	}
	return s.Dur(v).String()
}

// Expect says in words which values are allowed.
func (s *Spec[T]) Expect() string {
	unit := ""
	if s.Unit != "" {
		unit = " " + s.Unit
	}
	switch {
	case s.Int != nil && s.Multiple > 1:
		return fmt.Sprintf("%d to %d%s in multiples of %d", s.Min, s.Max, unit, s.Multiple)
	case s.Int != nil:
		return fmt.Sprintf("%d to %d%s", s.Min, s.Max, unit)
	case s.Bool != nil:
		return "true or false"
	case s.Dur != nil:
		us := time.Microsecond
		return fmt.Sprintf("a time with unit (such as 50us) from %v to %v", time.Duration(s.Min)*us, time.Duration(s.Max)*us)
	case s.Values != nil:
		return "one of " + strings.Join(s.Values, ", ")
	}
	return "text"
}

// Default is the default as it is written in a configuration.
func (s *Spec[T]) Default() string {
	var v T
	s.setDefault(&v)
	return s.Text(&v)
}

// ParseInt reads a plain decimal: digits with an optional minus sign, no
// leading zero, no other base, no separator. What YAML libraries quietly
// accept (010 as 8, 1_000, 1e3) is refused here.
func ParseInt(text string) (int, error) {
	d := strings.TrimPrefix(text, "-")
	if d == "" || (len(d) > 1 && d[0] == '0') || strings.Trim(d, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a plain decimal number", text)
	}
	return strconv.Atoi(text)
}
